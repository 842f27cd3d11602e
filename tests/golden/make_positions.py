"""Makes positions.safetensors with PyTorch: attention with a learned bias by distance, with linear biases, with rotated queries and keys."""

import sys

import torch
from torch.nn.functional import scaled_dot_product_attention

from make import write_safetensors


def distances(queries, keys):
    return torch.arange(keys)[None, :] - torch.arange(queries)[:, None]


def rotated(x, first):
    """Pairs as complex numbers, times e^(i angle)."""
    length, width = x.shape[-2:]
    rates = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = (first + torch.arange(length, dtype=torch.float64))[:, None] * rates
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], width // 2, 2))
    return torch.view_as_real(pairs * turns).reshape(x.shape).float()


def rotated_halves(x, first):
    """As Hugging Face's apply_rotary_pos_emb: element c is turned with element c + width / 2."""
    length, width = x.shape[-2:]
    rates = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = (first + torch.arange(length, dtype=torch.float64))[:, None] * torch.cat([rates, rates])
    a, b = x.double().chunk(2, -1)
    return (x.double() * angles.cos() + torch.cat([-b, a], -1) * angles.sin()).float()


def case(name, tensors, heads, queries, keys, width):
    q = torch.randn(2, heads, queries, width, requires_grad=True)
    k = torch.randn(2, heads, keys, width, requires_grad=True)
    v = torch.randn(2, heads, keys, 5, requires_grad=True)
    dy = torch.randn(2, heads, queries, 5)
    table = torch.randn(heads, 9, requires_grad=True)
    distance = distances(queries, keys)
    if name == "relative":
        y = scaled_dot_product_attention(q, k, v, attn_mask=table[:, distance.clamp(-4, 4) + 4][None])
    elif name == "alibi":
        slopes = torch.tensor([2.0**-4, 2.0**-8, 2.0**-2])  # three heads: those of two, then the first of four
        bias = -slopes[:, None, None] * distance.abs()
        y = scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(distance > 0, float("-inf"))[None])
    else:
        turn = rotated if name == "rotary" else rotated_halves
        y = scaled_dot_product_attention(turn(q, 6), turn(k, 0), v)
    y.backward(dy)
    found = {"q": q, "k": k, "v": v, "dy": dy, "output": y, "dq": q.grad, "dk": k.grad, "dv": v.grad}
    if name == "relative":
        found |= {"table": table, "dtable": table.grad}
    tensors |= {f"{name}.{part}": t for part, t in found.items()}


def main():
    torch.manual_seed(5)
    tensors = {}
    case("relative", tensors, heads=2, queries=6, keys=11, width=8)
    case("alibi", tensors, heads=3, queries=9, keys=9, width=8)
    case("rotary", tensors, heads=2, queries=4, keys=10, width=6)
    case("rotary_halves", tensors, heads=2, queries=4, keys=10, width=6)
    write_safetensors(sys.argv[1], tensors, {"made_with": "PyTorch " + torch.__version__.split("+")[0]})


main()
