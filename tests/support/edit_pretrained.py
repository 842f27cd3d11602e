"""Changes a pretrained folder in place: edit_pretrained.py FOLDER HOW [ARGUMENT ...].

half, brain: the weights as F16 or BF16. drop NAME, rename NAME NEW, reshape NAME SHAPE, nan NAME: one tensor. shards [PATH]: two files, the
first tensor being in PATH if it is given. config KEY VALUE: a key of config.json. header INDEX VALUE: a number of llama2.c's model.bin.
"""

import json, os, struct, sys
folder, how, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
if how == "config":
    path = os.path.join(folder, "config.json")
    config = json.load(open(path))
    config[rest[0]] = json.loads(rest[1])
    json.dump(config, open(path, "w"))
    sys.exit()
if how == "header":
    with open(os.path.join(folder, "model.bin"), "r+b") as f:
        f.seek(4 * int(rest[0]))
        f.write(struct.pack("i", int(rest[1])))
    sys.exit()
path = os.path.join(folder, "model.safetensors")
data = open(path, "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header, body = json.loads(data[8:8 + n]), data[8 + n:]
header.pop("__metadata__", None)
tensors = {k: [v["dtype"], v["shape"], body[v["data_offsets"][0]:v["data_offsets"][1]]] for k, v in header.items()}
def write(path, tensors):
    head, at = {}, 0
    for k, (kind, shape, bits) in tensors.items():
        head[k] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(bits)]}
        at += len(bits)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))
floats = lambda bits: struct.unpack("<%df" % (len(bits) // 4), bits)
if how == "half":
    tensors = {k: ["F16", s, struct.pack("<%de" % (len(b) // 4), *floats(b))] for k, (t, s, b) in tensors.items()}
elif how == "brain":
    tensors = {k: ["BF16", s, b"".join(b[i + 2:i + 4] for i in range(0, len(b), 4))] for k, (t, s, b) in tensors.items()}
elif how == "drop":
    del tensors[rest[0]]
elif how == "rename":
    tensors = {rest[1] if k == rest[0] else k: v for k, v in tensors.items()}
elif how == "reshape":
    tensors[rest[0]][1] = json.loads(rest[1])
elif how == "nan":
    kind, shape, bits = tensors[rest[0]]
    size = 2 if kind != "F32" else 4
    tensors[rest[0]][2] = bits[:size] + b"\xff" * size + bits[2 * size:]
elif how == "shards":
    names = list(tensors)
    parts = [names[:len(names) // 2], names[len(names) // 2:]]
    index = {"metadata": {}, "weight_map": {}}
    for i, part in enumerate(parts):
        file = "model-0000%d-of-00002.safetensors" % (i + 1)
        write(os.path.join(folder, file), {k: tensors[k] for k in part})
        index["weight_map"].update({k: file for k in part})
    if rest:
        index["weight_map"][names[0]] = rest[0]
    json.dump(index, open(os.path.join(folder, "model.safetensors.index.json"), "w"))
    os.remove(path)
    sys.exit()
write(path, tensors)
