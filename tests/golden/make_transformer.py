"""Makes the golden files of the Transformer: two tiny ones from plain PyTorch operations, checked against PyTorch's own layers.

Everything is computed in double precision from float32 values and rounded once, when it is written.
"""

import math
import sys

import torch
from torch import nn
from torch.nn import functional

from make import write_safetensors


class Transformer:
    """Parameters by their names in qkv; a tied matrix stands once, as encoder.embedding.weight."""

    def __init__(self, source, target, width, ffn, heads, key_heads, layers, pre_norm, bias, tied):
        self.width, self.heads, self.key_heads, self.pre_norm, self.bias, self.tied = width, heads, key_heads, pre_norm, bias, tied
        self.layers, self.p = {"encoder": layers[0], "decoder": layers[1]}, {}
        for part, vocabulary in (("encoder", source), ("decoder", target)):
            if part == "encoder" or not tied:
                self.add(f"{part}.embedding.weight", torch.randn(vocabulary, width) / math.sqrt(width))
            for i in range(self.layers[part]):
                block = f"{part}.{i}"
                for attention in ("self",) if part == "encoder" else ("self", "cross"):
                    self.add_attention(f"{block}.{attention}")
                    self.add_norm(f"{block}.{attention}_norm")
                self.add_linear(f"{block}.ffn.first", width, ffn, True)
                self.add_linear(f"{block}.ffn.second", ffn, width, True)
                self.add_norm(f"{block}.ffn_norm")
            if pre_norm:
                self.add_norm(f"{part}.norm")
        if not tied:
            self.add("decoder.output.weight", torch.randn(target, width) / math.sqrt(width))
        self.add("decoder.output.bias", torch.randn(target) / 4)

    def add(self, name, values):
        self.p[name] = values.double().requires_grad_()

    def add_linear(self, name, inputs, outputs, bias):
        self.add(name + ".weight", torch.randn(outputs, inputs) / math.sqrt(inputs))
        if bias:
            self.add(name + ".bias", torch.randn(outputs) / 4)

    def add_norm(self, name):
        self.add(name + ".gamma", 1 + torch.randn(self.width) / 8)
        self.add(name + ".beta", torch.randn(self.width) / 8)

    def add_attention(self, name):
        keys = self.width // self.heads * self.key_heads
        for part, outputs in (("to_q", self.width), ("to_k", keys), ("to_v", keys), ("to_out", self.width)):
            self.add_linear(f"{name}.{part}", self.width, outputs, self.bias)

    def linear(self, name, x):
        y = x @ self.p[name + ".weight"].T
        return y + self.p[name + ".bias"] if name + ".bias" in self.p else y

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-5) * self.p[name + ".gamma"] + self.p[name + ".beta"]

    def attention(self, name, x, memory, visible):
        """visible: (B, 1, n or 1, m), or nothing. Query head h reads key head h / (heads / key heads)."""
        d, shared = self.width // self.heads, self.heads // self.key_heads
        q, k, v = (
            self.linear(f"{name}.{part}", t).unflatten(-1, (count, d)).transpose(1, 2)
            for part, t, count in (("to_q", x, self.heads), ("to_k", memory, self.key_heads), ("to_v", memory, self.key_heads))
        )
        k, v = (torch.stack([t[:, h // shared] for h in range(self.heads)], 1) for t in (k, v))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(d)).masked_fill(~visible, -math.inf)
        return self.linear(f"{name}.to_out", (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2))

    def ffn(self, name, x):
        hidden = self.linear(name + ".first", x)
        hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2 if self.pre_norm else torch.clamp(hidden, min=0)
        return self.linear(name + ".second", hidden)

    def residual(self, norm, x, sub):
        return x + sub(self.norm(norm, x)) if self.pre_norm else self.norm(norm, x + sub(x))

    def block(self, name, x, visible, memory=None, memory_visible=None):
        x = self.residual(name + ".self_norm", x, lambda t: self.attention(name + ".self", t, t, visible))
        if memory is not None:
            x = self.residual(name + ".cross_norm", x, lambda t: self.attention(name + ".cross", t, memory, memory_visible))
        return self.residual(name + ".ffn_norm", x, lambda t: self.ffn(name + ".ffn", t))

    def embed(self, part, ids):
        x = self.p[f"{'encoder' if self.tied else part}.embedding.weight"][ids] * math.sqrt(self.width)
        angles = torch.arange(ids.shape[1])[:, None] / 10000 ** (torch.arange(0, self.width, 2).double() / self.width)
        return x + torch.stack((torch.sin(angles), torch.cos(angles)), -1).flatten(1)

    def encode(self, source, lens):
        x, visible = self.embed("encoder", source), (torch.arange(source.shape[1]) < lens[:, None])[:, None, None]
        for i in range(self.layers["encoder"]):
            x = self.block(f"encoder.{i}", x, visible)
        return (self.norm("encoder.norm", x) if self.pre_norm else x), visible

    def logits(self, source, lens, target):
        memory, memory_visible = self.encode(source, lens)
        x, visible = self.embed("decoder", target), torch.ones(target.shape[1], target.shape[1]).tril().bool()[None, None]
        for i in range(self.layers["decoder"]):
            x = self.block(f"decoder.{i}", x, visible, memory, memory_visible)
        x = self.norm("decoder.norm", x) if self.pre_norm else x
        return x @ self.p["encoder.embedding.weight" if self.tied else "decoder.output.weight"].T + self.p["decoder.output.bias"]


class PyTorchLayers:
    """The same model from nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, to check the one above."""

    def __init__(self, model):
        self.model = model
        activation = functional.gelu if model.pre_norm else functional.relu
        ffn = model.p["encoder.0.ffn.first.weight"].shape[0]
        options = {"dropout": 0.0, "activation": activation, "batch_first": True, "norm_first": model.pre_norm, "dtype": torch.float64}
        self.layers = {}
        for part, kind in (("encoder", nn.TransformerEncoderLayer), ("decoder", nn.TransformerDecoderLayer)):
            self.layers[part] = [kind(model.width, model.heads, ffn, **options) for _ in range(model.layers[part])]
            for i, layer in enumerate(self.layers[part]):
                self.fill(layer, f"{part}.{i}")

    @torch.no_grad()
    def fill(self, layer, name):
        p = self.model.p
        decoder = isinstance(layer, nn.TransformerDecoderLayer)
        self.fill_attention(layer.self_attn, name + ".self")
        if decoder:
            self.fill_attention(layer.multihead_attn, name + ".cross")
        norms = ("self_norm", "cross_norm", "ffn_norm") if decoder else ("self_norm", "ffn_norm")
        for theirs, ours in zip((layer.norm1, layer.norm2, getattr(layer, "norm3", None)), norms):
            theirs.weight.copy_(p[f"{name}.{ours}.gamma"])
            theirs.bias.copy_(p[f"{name}.{ours}.beta"])
        for theirs, ours in ((layer.linear1, "first"), (layer.linear2, "second")):
            theirs.weight.copy_(p[f"{name}.ffn.{ours}.weight"])
            theirs.bias.copy_(p[f"{name}.ffn.{ours}.bias"])

    def fill_attention(self, theirs, name):
        """Key heads that are shared are written out once for each of their query heads."""
        m = self.model
        theirs.in_proj_bias.zero_()
        theirs.out_proj.bias.zero_()
        theirs.out_proj.weight.copy_(m.p[name + ".to_out.weight"])
        if m.bias:
            theirs.out_proj.bias.copy_(m.p[name + ".to_out.bias"])
        for i, part in enumerate(("to_q", "to_k", "to_v")):
            rows = slice(i * m.width, (i + 1) * m.width)
            heads = m.heads if part == "to_q" else m.key_heads
            spread = lambda t: t.unflatten(0, (heads, -1)).repeat_interleave(m.heads // heads, 0).flatten(0, 1)
            theirs.in_proj_weight[rows] = spread(m.p[f"{name}.{part}.weight"])
            if m.bias:
                theirs.in_proj_bias[rows] = spread(m.p[f"{name}.{part}.bias"])

    def norm(self, part, x):
        if not self.model.pre_norm:
            return x
        return functional.layer_norm(x, (self.model.width,), self.model.p[part + ".norm.gamma"], self.model.p[part + ".norm.beta"])

    def logits(self, source, lens, target):
        padding = torch.arange(source.shape[1]) >= lens[:, None]
        memory = self.model.embed("encoder", source)
        for layer in self.layers["encoder"]:
            memory = layer(memory, src_key_padding_mask=padding)
        memory, x = self.norm("encoder", memory), self.model.embed("decoder", target)
        later = torch.ones(target.shape[1], target.shape[1]).triu(1).bool()
        for layer in self.layers["decoder"]:
            x = layer(x, memory, tgt_mask=later, memory_key_padding_mask=padding)
        weight = self.model.p["encoder.embedding.weight" if self.model.tied else "decoder.output.weight"]
        return functional.linear(self.norm("decoder", x), weight, self.model.p["decoder.output.bias"])


def ten_steps(path, model, inputs, loss_of):
    """Adam with rate 0.005 after clipping to norm 1."""
    start = [inputs[name] for name in ("source", "source_lens", "target_in")]
    reference, ours = PyTorchLayers(model).logits(*start), model.logits(*start)
    assert torch.allclose(reference, ours, rtol=1e-12, atol=1e-12), (reference - ours).abs().max()
    names, values = zip(*model.p.items())
    tensors = {"start." + name: p.clone() for name, p in model.p.items()}
    optimizer, losses = torch.optim.Adam(values, lr=0.005), []
    for step in range(10):
        optimizer.zero_grad()
        logits = model.logits(*start)
        loss = loss_of(logits)
        loss.backward()
        if step == 0:
            tensors["logits"] = logits
            tensors |= {"grad." + name: p.grad.clone() for name, p in model.p.items()}
        nn.utils.clip_grad_norm_(values, 1.0)
        losses.append(loss.detach())
        optimizer.step()
    tensors["losses"] = torch.stack(losses)
    tensors |= {"end." + name: p for name, p in zip(names, values)}
    tensors = {name: t.float() for name, t in tensors.items()} | {"input." + name: t.to(torch.int32) for name, t in inputs.items()}
    write_safetensors(path, tensors, {"made_with": "PyTorch " + torch.__version__.split("+")[0]})


def some_inputs(source, target, source_lens, target_lens):
    b, s, t = len(source_lens), max(source_lens), max(target_lens)
    ids = {"source": torch.randint(source, (b, s)), "target_in": torch.randint(target, (b, t)), "targets": torch.randint(target, (b, t))}
    return ids | {"source_lens": torch.tensor(source_lens), "target_lens": torch.tensor(target_lens)}


def post_norm(path):
    """The book's blocks and loss: the sum over valid places over the number of places."""
    torch.manual_seed(2)
    model = Transformer(13, 11, width=8, ffn=16, heads=2, key_heads=2, layers=(2, 2), pre_norm=False, bias=False, tied=False)
    inputs = some_inputs(13, 11, [5, 2, 4], [3, 4, 1])
    counted = torch.arange(4) < inputs["target_lens"][:, None]
    each = lambda logits: functional.cross_entropy(logits.transpose(1, 2), inputs["targets"], reduction="none")
    ten_steps(path, model, inputs, lambda logits: (each(logits) * counted).sum() / 4)


def pre_norm(path):
    """Shared key heads, biases, one vocabulary; label smoothing 0.1, the mean over valid places."""
    torch.manual_seed(3)
    model = Transformer(12, 12, width=8, ffn=16, heads=4, key_heads=2, layers=(1, 2), pre_norm=True, bias=True, tied=True)
    inputs = some_inputs(12, 12, [3, 5, 1], [4, 2, 3])
    counted = torch.arange(4) < inputs["target_lens"][:, None]
    wanted = inputs["targets"][counted]
    ten_steps(path, model, inputs, lambda logits: functional.cross_entropy(logits[counted], wanted, label_smoothing=0.1))


def main():
    torch.set_num_threads(1)
    post_norm(sys.argv[1] + "/transformer_post.safetensors")
    pre_norm(sys.argv[1] + "/transformer_pre.safetensors")


if __name__ == "__main__":
    main()
