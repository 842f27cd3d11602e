"""Makes the golden files of the vision Transformer: the book's ViT in miniature, and one of PyTorch's own encoder layers.

Everything is computed in double precision from float32 values and rounded once, when it is written.
"""

import math
import sys

import torch
from torch import nn
from torch.nn import functional

from make import write_safetensors


class MultiHeadAttention(nn.Module):
    """The book's: projections without biases, scaled dot products."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (f(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for f in (self.to_q, self.to_k, self.to_v))
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[3]), -1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))


class BookBlock(nn.Module):
    def __init__(self, width, ffn, heads):
        super().__init__()
        self.self_norm, self.ffn_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.self, self.first, self.second = MultiHeadAttention(width, heads), nn.Linear(width, ffn), nn.Linear(ffn, width)

    def forward(self, x):
        x = x + self.self(self.self_norm(x))
        return x + self.second(functional.gelu(self.first(self.ffn_norm(x))))

    def names(self):
        for part in ("to_q", "to_k", "to_v", "to_out"):
            yield f"self.{part}.weight", getattr(self.self, part).weight
        for norm in ("self_norm", "ffn_norm"):
            yield norm + ".gamma", getattr(self, norm).weight
            yield norm + ".beta", getattr(self, norm).bias
        for part in ("first", "second"):
            yield f"ffn.{part}.weight", getattr(self, part).weight
            yield f"ffn.{part}.bias", getattr(self, part).bias


class PyTorchBlock(nn.TransformerEncoderLayer):
    """norm_first and GELU; its packed projection is written as three."""

    def __init__(self, width, ffn, heads):
        super().__init__(width, heads, ffn, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)

    def names(self):
        attention = self.self_attn
        for i, part in enumerate(("to_q", "to_k", "to_v")):
            rows = slice(i * attention.embed_dim, (i + 1) * attention.embed_dim)
            yield f"self.{part}.weight", (attention.in_proj_weight, rows)
            yield f"self.{part}.bias", (attention.in_proj_bias, rows)
        yield "self.to_out.weight", attention.out_proj.weight
        yield "self.to_out.bias", attention.out_proj.bias
        for name, norm in (("self_norm", self.norm1), ("ffn_norm", self.norm2)):
            yield name + ".gamma", norm.weight
            yield name + ".beta", norm.bias
        for name, layer in (("first", self.linear1), ("second", self.linear2)):
            yield f"ffn.{name}.weight", layer.weight
            yield f"ffn.{name}.bias", layer.bias


class ViT(nn.Module):
    def __init__(self, block, size, patch, width, ffn, heads, layers, classes, channels, class_token):
        super().__init__()
        self.patch_embedding = nn.Conv2d(channels, width, patch, patch)
        patches = (size[0] // patch) * (size[1] // patch)
        self.cls = nn.Parameter(torch.randn(1, 1, width) / 4) if class_token else None
        self.positions = nn.Parameter(torch.randn(patches + class_token, width) / 2)
        self.blocks = nn.ModuleList(block(width, ffn, heads) for _ in range(layers))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images):
        x = self.patch_embedding(images).flatten(2).transpose(1, 2)
        if self.cls is not None:
            x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), 1)
        x = x + self.positions
        for block in self.blocks:
            x = block(x)
        return self.output(self.norm(x[:, 0]) if self.cls is not None else self.norm(x).mean(1))

    def names(self):
        """Parameters by their names in qkv, some as (parameter, rows of it)."""
        yield "embed.weight", self.patch_embedding.weight
        yield "embed.bias", self.patch_embedding.bias
        if self.cls is not None:
            yield "cls", self.cls
        yield "positions", self.positions
        for i, block in enumerate(self.blocks):
            for name, p in block.names():
                yield f"encoder.{i}.{name}", p
        yield "encoder.norm.gamma", self.norm.weight
        yield "encoder.norm.beta", self.norm.bias
        yield "output.weight", self.output.weight
        yield "output.bias", self.output.bias


def values(model, prefix, of):
    out = {}
    for name, p in model.names():
        t = of(p[0])[p[1]] if isinstance(p, tuple) else of(p)
        out[prefix + name] = t.detach().clone().flatten(1) if name == "embed.weight" else t.detach().clone()
    return out


def ten_steps(path, model, images, labels, loss_of, optimizer):
    """From float32 values, in double."""
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:
                p.add_(torch.randn_like(p) / 8)
    model = model.double()
    tensors, losses = values(model, "start.", lambda p: p), []
    optimizer = optimizer(model.parameters())
    for step in range(10):
        optimizer.zero_grad()
        logits = model(images.double())
        loss = loss_of(logits)
        loss.backward()
        if step == 0:
            tensors["logits"] = logits
            tensors |= values(model, "grad.", lambda p: p.grad)
        losses.append(loss.detach())
        optimizer.step()
    tensors["losses"] = torch.stack(losses)
    tensors |= values(model, "end.", lambda p: p) | {"input.images": images}
    tensors = {name: t.float() for name, t in tensors.items()} | {"input.labels": labels.to(torch.int32)}
    write_safetensors(path, tensors, {"made_with": "PyTorch " + torch.__version__.split("+")[0]})


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    labels = torch.randint(4, (6,))
    loss = lambda logits: functional.cross_entropy(logits, labels)
    book = ViT(BookBlock, (8, 12), 4, width=8, ffn=12, heads=2, layers=2, classes=4, channels=1, class_token=True)
    ten_steps(sys.argv[1] + "/vision_book.safetensors", book, torch.rand(6, 1, 8, 12), labels, loss, lambda p: torch.optim.SGD(p, lr=0.1))
    smooth = lambda logits: functional.cross_entropy(logits, labels, label_smoothing=0.1)
    mean = ViT(PyTorchBlock, (6, 6), 2, width=8, ffn=16, heads=4, layers=2, classes=4, channels=3, class_token=False)
    ten_steps(sys.argv[1] + "/vision_mean.safetensors", mean, torch.rand(6, 3, 6, 6), labels, smooth, lambda p: torch.optim.Adam(p, lr=0.005))


if __name__ == "__main__":
    main()
