"""never_ends.py RUN COPY: a copy of a translation run that never ends a sentence (the bias of <pad>, <bos>, <eos>
and <unk> is -10000), so that every translation has the longest length allowed and decoding times can be compared."""
import json
import shutil
import struct
import sys

run, copy = sys.argv[1:]
shutil.copytree(run, copy)
path = copy + "/model.safetensors"
with open(path, "rb") as file:
    data = bytearray(file.read())
size = struct.unpack("<Q", data[:8])[0]
bias = json.loads(data[8 : 8 + size])["decoder.output.bias"]
begin = 8 + size + bias["data_offsets"][0]
data[begin : begin + 16] = struct.pack("<4f", *[-1e4] * 4)
with open(path, "wb") as file:
    file.write(data)
