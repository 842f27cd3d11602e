"""nanoGPT's small setting for a CPU in PyTorch, with the validation loss that qkv reports: over the whole validation part.

  build/peers-venv/bin/python bench/peers/nano_lm.py TEXT SEED...
"""

import math
import pathlib
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional

from language_cases import NANO, LanguageModel

STEPS, WARMUP, RATE, LOWEST, BATCH = 2000, 100, 1e-3, 1e-4, 12


def rate_at(step):
    if step < WARMUP:
        return RATE * (step + 1) / (WARMUP + 1)
    return LOWEST + 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) * (RATE - LOWEST)


def train(read, seed):
    torch.manual_seed(seed)
    model, context = LanguageModel(NANO), NANO["context"]
    for name, p in model.named_parameters():
        if p.dim() == 2:
            nn.init.normal_(p, std=0.02 / math.sqrt(2 * NANO["layers"]) if name.endswith(("out.weight", "second.weight")) else 0.02)
    matrices, vectors = ([p for p in model.parameters() if (p.dim() >= 2) == wide] for wide in (True, False))
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99), fused=True)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step)
        starts = torch.randint(len(read) - context, (BATCH, 1)) + torch.arange(context)
        loss = functional.cross_entropy(model(read[starts]).flatten(0, 1), read[starts + 1].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


@torch.no_grad()
def valid_loss(model, valid):
    """Nats per character over blocks that do not overlap; the last one is shorter."""
    total, context = 0.0, NANO["context"]
    for begin in range(0, len(valid) - 1, context):
        block = valid[begin : begin + context + 1]
        total += functional.cross_entropy(model(block[None, :-1])[0], block[1:], reduction="sum").item()
    return total / (len(valid) - 1)


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    ids = {c: i for i, c in enumerate(sorted(set(text)))}
    codes = torch.tensor([ids[c] for c in text])
    cut = int(0.9 * len(codes))
    losses = []
    for seed in map(int, sys.argv[2:]):
        losses.append(valid_loss(train(codes[:cut], seed), codes[cut:]))
        print(f"seed {seed}: {losses[-1]:.4f}", flush=True)
    print(f"mean {numpy.mean(losses):.4f}")


main()
