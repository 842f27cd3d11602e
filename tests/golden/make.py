"""Makes the golden files with PyTorch: small models and ten Adam steps of each; attention and recurrent layers alone."""

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


def recurrent_case(tensors, name, layer, x, lens):
    """One call of PyTorch's own GRU or LSTM on packed sequences: inputs, weights, outputs, last states and every gradient."""
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    h0 = torch.randn(count, x.shape[0], layer.hidden_size).requires_grad_()
    c0 = torch.randn(count, x.shape[0], layer.hidden_size).requires_grad_()
    lstm = isinstance(layer, nn.LSTM)
    x.requires_grad_()
    packed = nn.utils.rnn.pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
    y, last = layer(packed, (h0, c0) if lstm else h0)
    y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])
    results = {"y": y} | ({"h": last[0], "c": last[1]} if lstm else {"h": last})
    gradients = {key: torch.randn_like(t) for key, t in results.items()}
    sum((t * gradients[key]).sum() for key, t in results.items()).backward()
    inputs = {"x": x, "h0": h0} | ({"c0": c0} if lstm else {}) | dict(layer.named_parameters())
    tensors |= {f"{name}.{key}": t for key, t in (inputs | results).items()} | {f"{name}.lens": lens.to(torch.int32)}
    tensors |= {f"{name}.d{key}": t for key, t in gradients.items()} | {f"{name}.grad.{key}": t.grad for key, t in inputs.items()}


def recurrent(path):
    tensors = {}
    lens = torch.tensor([3, 7, 1, 5])
    recurrent_case(tensors, "gru", nn.GRU(5, 6, 2, batch_first=True, bidirectional=True), torch.randn(4, 7, 5), lens)
    recurrent_case(tensors, "lstm", nn.LSTM(5, 6, 2, batch_first=True), torch.randn(4, 7, 5), lens)
    write_safetensors(path, tensors, {"made_with": "PyTorch " + torch.__version__.split("+")[0]})


class Bahdanau(nn.Module):
    """A GRU encoder, and a GRU decoder that attends to its states in every step: 2 layers, additive scores, teacher forcing."""

    def __init__(self, source, target, embed, hidden):
        super().__init__()
        self.source, self.target = nn.Embedding(source, embed), nn.Embedding(target, embed)
        self.encoder = nn.GRU(embed, hidden, 2, batch_first=True)
        self.W_q, self.W_k, self.w_v = (nn.Linear(hidden, n, bias=False) for n in (hidden, hidden, 1))
        self.decoder = nn.GRU(embed + hidden, hidden, 2, batch_first=True)
        self.output = nn.Linear(hidden, target)

    def forward(self, source, lens, target):
        packed = nn.utils.rnn.pack_padded_sequence(self.source(source), lens, batch_first=True, enforce_sorted=False)
        states, h = self.encoder(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        keys, hidden_keys = self.W_k(states), torch.arange(source.shape[1])[None] >= lens[:, None]
        outputs, weights = [], []
        for embedded in self.target(target).unbind(1):
            scores = self.w_v(torch.tanh(self.W_q(h[-1])[:, None] + keys))[..., 0].masked_fill(hidden_keys, float("-inf"))
            weights.append(torch.softmax(scores, -1))
            context = (weights[-1][:, None] @ states)[:, 0]
            y, h = self.decoder(torch.cat((context, embedded), -1)[:, None], h)
            outputs.append(y[:, 0])
        return self.output(torch.stack(outputs, 1)), torch.stack(weights, 1)


def bahdanau(path):
    """Loss: the sum over valid places over the number of places, as the book has it; gradients clipped to norm 1."""
    model = Bahdanau(13, 11, 6, 8)
    source, lens = torch.randint(13, (5, 6)), torch.tensor([4, 6, 2, 5, 1])
    target_in, targets, target_lens = torch.randint(11, (5, 4)), torch.randint(11, (5, 4)), torch.tensor([4, 2, 3, 1, 4])
    inputs = {"source": source, "lens": lens, "target_in": target_in, "targets": targets, "target_lens": target_lens}
    tensors = {"input." + name: t.to(torch.int32) for name, t in inputs.items()}
    tensors |= {"start." + name: p.clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for step in range(10):
        optimizer.zero_grad()
        logits, weights = model(source, lens, target_in)
        counted = (torch.arange(4)[None] < target_lens[:, None]).float()
        loss = (nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none") * counted).sum() / 4
        loss.backward()
        if step == 0:
            tensors |= {"logits": logits.clone(), "weights": weights.clone()}
            tensors |= {"grad." + name: p.grad.clone() for name, p in model.named_parameters()}
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        losses.append(loss.detach())
        optimizer.step()
    tensors["losses"] = torch.stack(losses)
    tensors |= {"end." + name: p.clone() for name, p in model.named_parameters()}
    write_safetensors(path, tensors, {"made_with": "PyTorch " + torch.__version__.split("+")[0]})


def main():
    folder = sys.argv[1]
    torch.manual_seed(1)
    torch.set_num_threads(1)
    run(Perceptron(), torch.randn(20, 12), torch.randint(5, (20,)), folder + "/perceptron.safetensors")
    run(AttentionBlock(), torch.randn(3, 7, 8), torch.randint(6, (3, 7)), folder + "/attention_block.safetensors")
    attention(folder + "/attention.safetensors")
    recurrent(folder + "/recurrent.safetensors")
    bahdanau(folder + "/bahdanau.safetensors")


if __name__ == "__main__":
    main()
