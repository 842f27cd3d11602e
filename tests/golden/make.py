"""Makes the golden files with PyTorch: a two-layer perceptron and one attention block, ten Adam steps each; and attention alone."""

import json
import struct
import sys

import torch
from torch import nn


def write_safetensors(path, tensors, metadata):
    """The format in a few lines, so that nothing but PyTorch is needed here."""
    header, offset, blobs = {"__metadata__": metadata}, 0, []
    for name in sorted(tensors):
        t = tensors[name].detach().contiguous()
        kind = {torch.float32: "F32", torch.int32: "I32"}[t.dtype]
        blob = t.numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


class Perceptron(nn.Module):
    """12 -> 16 -> tanh -> 5, cross-entropy."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 16), nn.Linear(16, 5)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


class AttentionBlock(nn.Module):
    """layer_norm(x + softmax(x Wq (x Wk)^T / sqrt(d)) x Wv) -> linear, two heads, from plain products."""

    def __init__(self):
        super().__init__()
        self.to_q, self.to_k, self.to_v = (nn.Linear(8, 8, bias=False) for _ in range(3))
        self.norm, self.out = nn.LayerNorm(8), nn.Linear(8, 6)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (f(x).reshape(b, n, 2, 4).permute(0, 2, 1, 3) for f in (self.to_q, self.to_k, self.to_v))
        weights = torch.softmax(q @ k.transpose(-1, -2) / 2.0, -1)
        mixed = (weights @ v).permute(0, 2, 1, 3).reshape(b, n, 8)
        return self.out(self.norm(x + mixed))


def run(model, x, targets, path):
    tensors = {"input.x": x, "input.targets": targets.to(torch.int32)}
    for name, p in model.named_parameters():
        tensors["start." + name] = p.detach().clone()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(10):
        optimizer.zero_grad()
        y = model(x)
        loss = nn.functional.cross_entropy(y.reshape(-1, y.shape[-1]), targets.reshape(-1))
        loss.backward()
        if step == 0:
            tensors["output"] = y.detach().clone()
            for name, p in model.named_parameters():
                tensors["grad." + name] = p.grad.detach().clone()
        losses.append(loss.detach())
        optimizer.step()
    tensors["losses"] = torch.stack(losses)
    for name, p in model.named_parameters():
        tensors["end." + name] = p.detach().clone()
    write_safetensors(path, tensors, {"made_with": "PyTorch " + torch.__version__.split("+")[0]})


def attention_case(tensors, name, q, k, v, mask=None, bias=None, causal=False):
    """One call of PyTorch's own attention: inputs, output, and the gradients of sum(output * dy)."""
    inputs = {"q": q, "k": k, "v": v} | ({"bias": bias} if bias is not None else {})
    for t in inputs.values():
        t.requires_grad_()
    shared = q.shape[1] // k.shape[1]
    y = nn.functional.scaled_dot_product_attention(
        q, k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1), attn_mask=mask if bias is None else bias, is_causal=causal
    )
    dy = torch.randn_like(y)
    y.backward(dy)
    tensors |= {f"{name}.{key}": t for key, t in inputs.items()} | {f"{name}.d{key}": t.grad for key, t in inputs.items()}
    tensors |= {f"{name}.output": y, f"{name}.dy": dy}
    if mask is not None:
        tensors[f"{name}.keep"] = mask.to(torch.int32)


def attention(path):
    def qkv(b, h, hk, n, m, d, dv):
        return torch.randn(b, h, n, d), torch.randn(b, hk, m, d), torch.randn(b, hk, m, dv)

    tensors = {}
    attention_case(tensors, "plain", *qkv(2, 2, 2, 7, 7, 8, 8))
    attention_case(tensors, "causal", *qkv(2, 2, 2, 19, 19, 5, 5), causal=True)
    attention_case(tensors, "unequal", *qkv(1, 3, 3, 5, 21, 16, 9))
    attention_case(tensors, "grouped", *qkv(2, 6, 2, 4, 9, 4, 3))
    keep = torch.rand(2, 1, 6, 11) < 0.6
    keep[..., 0] = True
    attention_case(tensors, "keep", *qkv(2, 2, 2, 6, 11, 8, 8), mask=keep)
    attention_case(tensors, "bias", *qkv(2, 2, 1, 6, 11, 8, 8), bias=torch.randn(1, 2, 6, 11))
    write_safetensors(path, tensors, {"made_with": "PyTorch " + torch.__version__.split("+")[0]})


def main():
    folder = sys.argv[1]
    torch.manual_seed(1)
    torch.set_num_threads(1)
    run(Perceptron(), torch.randn(20, 12), torch.randint(5, (20,)), folder + "/perceptron.safetensors")
    run(AttentionBlock(), torch.randn(3, 7, 8), torch.randint(6, (3, 7)), folder + "/attention_block.safetensors")
    attention(folder + "/attention.safetensors")


main()
