"""The model for the beam search comparison: a small Transformer that PyTorch trains on Multi30k for a few minutes, saved as safetensors."""

import collections
import json
import os
import pathlib
import re
import struct
import sys
import time

import numpy
import torch
from torch.nn import functional

from transformer import Transformer

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAD, BOS, EOS = 1, 2, 3
SIZES = {"width": 128, "ffn": 256, "heads": 4, "encoder_layers": 4, "decoder_layers": 4}
SIZES |= {"dropout": 0.1, "pre_norm": True, "bias": True, "tied": True}


def data_folder():
    return pathlib.Path(os.environ.get("QKV_TEST_DATA") or ROOT.parent / "shared" / "data") / "multi30k"


def lines(name):
    return [re.findall(r"\w+|[^\w\s]", line.lower()) for line in (data_folder() / name).read_text(encoding="utf-8").splitlines()]


def encode(words, vocabulary):
    return [vocabulary.get(word, 0) for word in words] + [EOS]


def padded(rows):
    ids = numpy.full((len(rows), max(map(len, rows))), PAD, numpy.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    return torch.from_numpy(ids)


def batches(pairs, tokens, rng):
    """Batches of pairs of similar length with at most `tokens` tokens, padding included, in random order."""
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][1]), len(pairs[i][0]), rng.random()))
    cut, out = [], []
    for i in order:
        if cut and (len(cut) + 1) * max(len(pairs[i][1]), len(pairs[i][0])) > tokens:
            out.append(cut)
            cut = []
        cut.append(i)
    out.append(cut)
    rng.shuffle(out)
    return out


def train(path, minutes):
    """English to German, with one vocabulary of the words that occur at least ten times."""
    pairs = list(zip(lines("train.en"), lines("train.de")))
    counts = collections.Counter(word for pair in pairs for side in pair for word in side)
    words = ["<unk>", "<pad>", "<bos>", "<eos>"] + sorted(word for word, n in counts.items() if n >= 10)
    vocabulary = {word: i for i, word in enumerate(words)}
    pairs = [tuple(encode(side, vocabulary) for side in pair) for pair in pairs]
    torch.manual_seed(1)
    rng = numpy.random.default_rng(1)
    model = Transformer(SIZES | {"source": len(words), "target": len(words)})
    optimizer = torch.optim.Adam(model.parameters(), fused=True, betas=(0.9, 0.98))
    start, step, seen = time.monotonic(), 0, 0.0
    while time.monotonic() - start < 60 * minutes:
        for batch in batches(pairs, 2000, rng):
            left = 1 - (time.monotonic() - start) / (60 * minutes)
            if left <= 0:
                break
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = 2e-3 * min(1, step / 200) * (0.05 + 0.95 * left)
            source, target = padded([pairs[i][0] for i in batch]), padded([pairs[i][1] for i in batch])
            target_in = torch.cat((torch.full((len(batch), 1), BOS), target[:, :-1]), 1)
            mask, counted = (source != PAD)[:, None, None], target != PAD
            logits = model.output(model.features(source, mask, target_in)[counted])
            loss = functional.cross_entropy(logits, target[counted], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            seen = loss.item() if step == 1 else 0.98 * seen + 0.02 * loss.item()
            if step % 100 == 0:
                print(f"beam model: step {step}, loss {seen:.2f}, {60 * minutes * left:.0f} s to go", file=sys.stderr, flush=True)
    save(path, model.arrays(), {"sizes": json.dumps(model.z), "words": json.dumps(words), "steps": str(step), "loss": f"{seen:.3f}"})


def save(path, arrays, metadata):
    header, offset = {"__metadata__": metadata}, 0
    for name, a in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [offset, offset + a.nbytes]}
        offset += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(a.tobytes() for a in arrays.values()))
    part.rename(path)


def load(path):
    """Arrays by name, sizes, words."""
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__")
    arrays = {}
    for name, info in header.items():
        first, last = info["data_offsets"]
        arrays[name] = numpy.frombuffer(data[begin + first : begin + last], numpy.float32).reshape(info["shape"])
    return arrays, json.loads(metadata["sizes"]), json.loads(metadata["words"])


if __name__ == "__main__":
    torch.set_flush_denormal(True)
    train(pathlib.Path(sys.argv[1]), float(sys.argv[2]))
