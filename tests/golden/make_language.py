"""Makes the golden files of language models: GPT-2's layout in miniature, and the same stack reading both ways.

The models are made of PyTorch's own modules (nn.Embedding, nn.Linear, nn.LayerNorm, scaled_dot_product_attention), in double precision, and
trained for ten steps of AdamW that decays matrices alone. Values are rounded once, when they are written.
"""

import math
import sys

import torch
from torch import nn
from torch.nn import functional

from make import write_safetensors


class Attention(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(width, width, bias=bias) for _ in range(4))

    def forward(self, x, causal):
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.to_q, self.to_k, self.to_v))
        return self.to_out(functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads, ffn, bias):
        super().__init__()
        self.self_norm, self.ffn_norm = (nn.LayerNorm(width, bias=bias) for _ in range(2))
        self.self = Attention(width, heads, bias)
        self.ffn = nn.ModuleDict({"first": nn.Linear(width, ffn, bias=bias), "second": nn.Linear(ffn, width, bias=bias)})

    def forward(self, x, causal):
        x = x + self.self(self.self_norm(x), causal)
        return x + self.ffn["second"](functional.gelu(self.ffn["first"](self.ffn_norm(x))))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, context, width, heads, ffn, layers, bias, causal):
        super().__init__()
        self.causal = causal
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, ffn, bias) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=bias)
        self.output = nn.Linear(width, vocabulary, bias=False)
        self.output.weight = self.words.weight
        for p in self.parameters():  # larger than GPT-2's, so that every gradient matters
            nn.init.normal_(p, std=1 / math.sqrt(p.shape[-1]) if p.dim() == 2 else 0.25)
        for m in self.modules():
            if isinstance(m, nn.LayerNorm):
                m.weight.data += 1

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, self.causal)
        return self.output(self.norm(x))


def our_name(name):
    """The name of a parameter in qkv."""
    name = name.replace("words.weight", "embedding.weight").replace("places.weight", "embedding.positions").replace("blocks.", "")
    if "norm." in name:
        name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
    return "model." + name


def ten_steps(path, model, ids, wanted):
    """AdamW with rate 0.005, beta2 0.99 and decay 0.1 of matrices, after clipping to norm 1; wanted: -1 where nothing is asked."""
    model.double()
    # From values that float32 holds.
    for p in model.parameters():
        p.data = p.data.float().double()
    named = dict(model.named_parameters())
    tensors = {"start." + our_name(name): p.detach().clone() for name, p in named.items()}
    matrices, vectors = ([p for p in named.values() if (p.dim() >= 2) == wide] for wide in (True, False))
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer, losses = torch.optim.AdamW(groups, lr=0.005, betas=(0.9, 0.99)), []
    for step in range(10):
        optimizer.zero_grad()
        logits = model(ids)
        loss = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=-1)
        loss.backward()
        if step == 0:
            tensors["logits"] = logits.detach()
            tensors |= {"grad." + our_name(name): p.grad.clone() for name, p in named.items()}
        nn.utils.clip_grad_norm_(named.values(), 1.0)
        losses.append(loss.detach())
        optimizer.step()
    tensors["losses"] = torch.stack(losses)
    tensors |= {"end." + our_name(name): p for name, p in named.items()}
    tensors = {name: t.float() for name, t in tensors.items()}
    tensors |= {"input.ids": ids.to(torch.int32), "input.wanted": wanted.to(torch.int32)}
    write_safetensors(path, tensors, {"made_with": "PyTorch " + torch.__version__.split("+")[0]})


def causal(path):
    """GPT-2: biases everywhere but in the output layer, which is the embedding."""
    torch.manual_seed(4)
    text = torch.randint(13, (3, 8))
    model = LanguageModel(13, 7, width=16, heads=4, ffn=24, layers=2, bias=True, causal=True)
    ten_steps(path, model, text[:, :-1], text[:, 1:])


def nano(path):
    """The same without biases, as nanoGPT has it."""
    torch.manual_seed(5)
    text = torch.randint(11, (2, 10))
    model = LanguageModel(11, 9, width=12, heads=3, ffn=48, layers=2, bias=False, causal=True)
    ten_steps(path, model, text[:, :-1], text[:, 1:])


def masked(path):
    """Every token sees all others; some are hidden (token 12) and asked for."""
    torch.manual_seed(7)
    text = torch.randint(12, (4, 9))
    hidden = torch.zeros(4, 9, dtype=torch.bool)
    for row, places in enumerate(((0, 5), (3, 8), (1, 2), (4, 7))):
        hidden[row, list(places)] = True
    model = LanguageModel(13, 9, width=16, heads=2, ffn=32, layers=2, bias=True, causal=False)
    ten_steps(path, model, text.masked_fill(hidden, 12), text.masked_fill(~hidden, -1))


def main():
    torch.set_num_threads(1)
    causal(sys.argv[1] + "/language_causal.safetensors")
    nano(sys.argv[1] + "/language_nano.safetensors")
    masked(sys.argv[1] + "/language_masked.safetensors")


if __name__ == "__main__":
    main()
