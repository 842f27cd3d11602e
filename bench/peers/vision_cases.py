"""The peers' side of the vision Transformer: a training step at the book's size."""

import numpy
import torch
from torch import nn
from torch.nn import functional

from cases import Case


class Block(nn.Module):
    """The book's ViTBlock; attention is PyTorch's own, which is faster than the book's products."""

    def __init__(self, width, ffn, heads, dropout):
        super().__init__()
        self.heads, self.rate = heads, dropout
        self.self_norm, self.ffn_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.ffn = nn.Sequential(nn.Linear(width, ffn), nn.GELU(), nn.Dropout(dropout), nn.Linear(ffn, width), nn.Dropout(dropout))

    def forward(self, x):
        y = self.self_norm(x)
        q, k, v = (f(y).unflatten(2, (self.heads, -1)).transpose(1, 2) for f in (self.to_q, self.to_k, self.to_v))
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=self.rate)
        x = x + self.to_out(y.transpose(1, 2).flatten(2))
        return x + self.ffn(self.ffn_norm(x))


class ViT(nn.Module):
    def __init__(self, size=96, patch=16, width=512, ffn=2048, heads=8, layers=2, classes=10, dropout=0.1, cls=True):
        super().__init__()
        self.embed = nn.Conv2d(1, width, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, width)) if cls else None
        self.positions = nn.Parameter(torch.randn((size // patch) ** 2 + cls, width))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(width, ffn, heads, dropout) for _ in range(layers)))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images):
        x = self.embed(images).flatten(2).transpose(1, 2)
        if self.cls is not None:
            x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), 1)
        x = self.blocks(self.dropout(x + self.positions))
        return self.output(self.norm(x[:, 0]) if self.cls is not None else self.norm(x).mean(1))

    def arrays(self):
        """Weights by their names in qkv."""
        out = {}
        for name, p in self.named_parameters():
            name = name.replace("blocks.", "encoder.").replace("norm.weight", "norm.gamma").replace("norm.bias", "norm.beta")
            for part in ("to_q", "to_k", "to_v", "to_out"):
                name = name.replace(f".{part}.", f".self.{part}.")
            name = name.replace("ffn.0.", "ffn.first.").replace("ffn.3.", "ffn.second.")
            name = "encoder." + name if name.startswith("norm.") else name
            values = p.detach().numpy()
            out[name] = values.reshape(len(values), -1) if name == "embed.weight" else values
        return out


class VisionStep(Case):
    name, title = "vision-step", "training step of the book's vision Transformer, 96 x 96, patch 16, width 512, batch 128 (dropout 0.1, SGD)"
    tolerance, repeats, our_repeats, rounds, compared, rate = 1e-4, 1, 1, 50, 3, 0.1
    long, probes, target, cls = True, 3, ">= 1.1", True

    def inputs(self):
        torch.manual_seed(11)
        rng = numpy.random.default_rng(12)
        data = {"images": rng.random((128, 1, 96, 96), numpy.float32), "labels": rng.integers(0, 10, 128).astype(numpy.int32)}
        return data | {"compared": numpy.array([self.compared], numpy.int32), "has_cls": numpy.array([self.cls], numpy.int32)} | self.start().arrays()

    def start(self, dropout=0.1):
        torch.manual_seed(11)
        return ViT(dropout=dropout, cls=self.cls)

    def peer(self, inputs):
        case = self

        class Peer:
            def __init__(self):
                self.images, self.labels = torch.tensor(inputs["images"]), torch.tensor(inputs["labels"]).long()
                self.begin(0.1)

            def begin(self, dropout):
                self.model = case.start(dropout)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=case.rate, fused=True)

            def run(self):
                self.optimizer.zero_grad()
                loss = functional.cross_entropy(self.model(self.images), self.labels)
                loss.backward()
                self.optimizer.step()
                return loss

            def results(self):
                self.begin(0.0)
                losses = torch.stack([self.run().detach() for _ in range(case.compared)]).numpy()
                self.begin(0.1)
                return {"losses": losses}

        return Peer()


class VisionMeanStep(VisionStep):
    """With the mean of the patches every state of the last block is needed, so both sides compute the same products."""

    name, title, cls = "vision-mean-step", "the same step with the mean of the patches instead of a class token", False


ALL = [VisionStep(), VisionMeanStep()]
