"""The Transformer of the comparisons in PyTorch at its best: packed projections, fused attention, a key/value cache for decoding."""

import math

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    """Self-attention projects to queries, keys and values in one product, cross-attention to keys and values."""

    def __init__(self, z, cross):
        super().__init__()
        self.heads, self.cross, self.rate = z["heads"], cross, z["dropout"]
        width, bias = z["width"], z["bias"]
        self.to_q = nn.Linear(width, width, bias) if cross else None
        self.packed = nn.Linear(width, (2 if cross else 3) * width, bias)
        self.to_out = nn.Linear(width, width, bias)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def project(self, x):
        """(B, n, parts * width) -> parts of (B, H, n, d)"""
        return [self.split(t) for t in self.packed(x).chunk(2 if self.cross else 3, -1)]

    def forward(self, x, memory=None, mask=None, causal=False):
        q, k, v = (self.split(self.to_q(x)), *self.project(memory)) if self.cross else self.project(x)
        rate = self.rate if self.training else 0.0
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate, is_causal=causal)
        return self.to_out(y.transpose(1, 2).flatten(2))

    def qkv_parameters(self):
        for kind, t in self.packed.named_parameters():
            for name, part in zip(("to_k", "to_v") if self.cross else ("to_q", "to_k", "to_v"), t.chunk(2 if self.cross else 3)):
                yield f"{name}.{kind}", part
        for name in ("to_q", "to_out") if self.cross else ("to_out",):
            yield from ((f"{name}.{kind}", t) for kind, t in getattr(self, name).named_parameters())


class Block(nn.Module):
    def __init__(self, z, decoder):
        super().__init__()
        self.pre_norm, self.drop = z["pre_norm"], nn.Dropout(z["dropout"])
        self.self, self.cross = Attention(z, False), Attention(z, True) if decoder else None
        self.self_norm, self.ffn_norm = nn.LayerNorm(z["width"]), nn.LayerNorm(z["width"])
        self.cross_norm = nn.LayerNorm(z["width"]) if decoder else None
        self.first, self.second = nn.Linear(z["width"], z["ffn"]), nn.Linear(z["ffn"], z["width"])

    def residual(self, norm, x, sub):
        return x + self.drop(sub(norm(x))) if self.pre_norm else norm(x + self.drop(sub(x)))

    def feed(self, x):
        return self.second(functional.relu(self.first(x)))

    def forward(self, x, mask=None, memory=None, memory_mask=None):
        x = self.residual(self.self_norm, x, lambda t: self.self(t, mask=mask, causal=self.cross is not None))
        if self.cross is not None:
            x = self.residual(self.cross_norm, x, lambda t: self.cross(t, memory, memory_mask))
        return self.residual(self.ffn_norm, x, self.feed)

    def qkv_parameters(self):
        yield from (("self." + name, t) for name, t in self.self.qkv_parameters())
        if self.cross is not None:
            yield from (("cross." + name, t) for name, t in self.cross.qkv_parameters())
        for name in ("first", "second"):
            yield from ((f"ffn.{name}.{kind}", t) for kind, t in getattr(self, name).named_parameters())
        for name in ("self_norm", "ffn_norm") + (("cross_norm",) if self.cross is not None else ()):
            yield from norm_parameters(name, getattr(self, name))


def norm_parameters(name, norm):
    yield name + ".gamma", norm.weight
    yield name + ".beta", norm.bias


class Transformer(nn.Module):
    """z: source, target, width, ffn, heads, encoder_layers, decoder_layers, dropout, pre_norm, bias, tied."""

    def __init__(self, z):
        super().__init__()
        self.z, self.drop, width = z, nn.Dropout(z["dropout"]), z["width"]
        self.source = nn.Embedding(z["source"], width)
        self.target = self.source if z["tied"] else nn.Embedding(z["target"], width)
        self.encoder = nn.ModuleList(Block(z, False) for _ in range(z["encoder_layers"]))
        self.decoder = nn.ModuleList(Block(z, True) for _ in range(z["decoder_layers"]))
        self.output = nn.Linear(width, z["target"])
        if z["tied"]:
            nn.init.normal_(self.source.weight, std=width**-0.5)
            self.output.weight = self.source.weight
        self.norms = nn.ModuleList(nn.LayerNorm(width) if z["pre_norm"] else nn.Identity() for _ in range(2))
        angles = torch.arange(512)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("positions", torch.stack((torch.sin(angles), torch.cos(angles)), -1).flatten(1), persistent=False)

    def embed(self, table, ids, first=0):
        return self.drop(table(ids) * math.sqrt(self.z["width"]) + self.positions[first : first + ids.shape[1]])

    def encode(self, source, mask):
        x = self.embed(self.source, source)
        for block in self.encoder:
            x = block(x, mask)
        return self.norms[0](x)

    def features(self, source, mask, target_in):
        """mask: (B, 1, 1, S), true where a source token is visible, or nothing."""
        memory, x = self.encode(source, mask), self.embed(self.target, target_in)
        for block in self.decoder:
            x = block(x, None, memory, mask)
        return self.norms[1](x)

    def qkv_parameters(self):
        """(name in qkv, parameter or a part of one)"""
        yield "encoder.embedding.weight", self.source.weight
        if not self.z["tied"]:
            yield "decoder.embedding.weight", self.target.weight
            yield "decoder.output.weight", self.output.weight
        yield "decoder.output.bias", self.output.bias
        for part, blocks, norm in (("encoder", self.encoder, self.norms[0]), ("decoder", self.decoder, self.norms[1])):
            for i, block in enumerate(blocks):
                yield from ((f"{part}.{i}.{name}", t) for name, t in block.qkv_parameters())
            if self.z["pre_norm"]:
                yield from norm_parameters(part + ".norm", norm)

    def arrays(self):
        return {name: t.detach().contiguous().numpy() for name, t in self.qkv_parameters()}

    @torch.no_grad()
    def fill(self, arrays):
        for name, t in self.qkv_parameters():
            t.copy_(torch.tensor(arrays[name]))
        return self


class BeamState:
    """B unfinished sentences of K hypotheses: caches (layers, 2, B * K, H, t, d), cross keys and values once per sentence."""

    def __init__(self, model, source, lens, beam):
        self.model, self.beam, self.steps = model, beam, 0
        self.mask = (torch.arange(source.shape[1]) < lens[:, None])[:, None, None]
        memory = model.encode(source, self.mask)
        self.cross = [block.cross.project(memory) for block in model.decoder]
        self.cache = None

    def attend_self(self, attention, layer, x, fresh):
        q, k, v = attention.project(x[:, None])
        if self.cache is not None:
            k, v = torch.cat((self.cache[layer, 0], k), 2), torch.cat((self.cache[layer, 1], v), 2)
        fresh.append(torch.stack((k, v)))
        return attention.to_out(functional.scaled_dot_product_attention(q, k, v).flatten(1))

    def attend_cross(self, attention, layer, x):
        """The hypotheses of a sentence are the queries of one call: its keys are read once."""
        q = attention.to_q(x).unflatten(0, (-1, self.beam)).unflatten(-1, (attention.heads, -1)).transpose(1, 2)
        y = functional.scaled_dot_product_attention(q, *self.cross[layer], attn_mask=self.mask)
        return attention.to_out(y.transpose(1, 2).flatten(2).flatten(0, 1))

    def step(self, tokens):
        """(B * K) -> logits (B * K, V)"""
        x, fresh = self.model.embed(self.model.target, tokens[:, None], self.steps)[:, 0], []
        for i, block in enumerate(self.model.decoder):
            x = block.residual(block.self_norm, x, lambda t: self.attend_self(block.self, i, t, fresh))
            x = block.residual(block.cross_norm, x, lambda t: self.attend_cross(block.cross, i, t))
            x = block.residual(block.ffn_norm, x, block.feed)
        self.cache, self.steps = torch.stack(fresh), self.steps + 1
        return self.model.output(self.model.norms[1](x))

    def select(self, rows, sentences):
        """Keeps these rows; and these sentences, if some are finished."""
        self.cache = self.cache.index_select(2, rows)
        if sentences is not None:
            self.mask = self.mask[sentences]
            self.cross = [[t[sentences] for t in pair] for pair in self.cross]


@torch.inference_mode()
def beam_search(model, source, lens, beam, length_penalty, max_length, pad=1, bos=2, eos=3):
    """The best output of every sentence, as lists of ids. The best 2 K continuations are looked at; an end counts among the first K; a
    sentence is finished with K ends. Hypotheses of L tokens are ranked by log p / L^a."""
    count = source.shape[0]
    ended, alive = [[] for _ in range(count)], torch.arange(count)
    state = BeamState(model, source, lens, beam)
    scores = torch.full((count, beam), -math.inf)
    scores[:, 0] = 0
    tokens, history = torch.full((count, beam), bos), torch.empty(count, beam, 0, dtype=torch.long)
    for step in range(max_length):
        logits = state.step(tokens.flatten()).unflatten(0, (-1, beam))
        norm = torch.logsumexp(logits, -1)
        logits[..., pad] = -math.inf
        best, ids = logits.topk(2 * beam, -1, sorted=False)  # per hypothesis, then among all of them
        best, at = (best + (scores - norm)[..., None]).flatten(1).topk(2 * beam, -1)
        parents, ids = at // (2 * beam), ids.flatten(1).gather(1, at)
        ends = ids == eos
        for s, rank in ends[:, :beam].nonzero().tolist():
            log_p = best[s, rank].item()
            ended[alive[s]].append((log_p / (step + 1) ** length_penalty, history[s, parents[s, rank]].tolist()))
        order = torch.sort(ends.byte(), dim=1, stable=True).indices[:, :beam]
        scores, tokens, parents = best.gather(1, order), ids.gather(1, order), parents.gather(1, order)
        history = torch.cat((history.gather(1, parents[..., None].expand(-1, -1, step)), tokens[..., None]), 2)
        unfinished = torch.tensor([len(ended[i]) < beam for i in alive.tolist()])
        if step + 1 == max_length:
            for s in unfinished.nonzero().flatten().tolist():
                ended[alive[s]] += [(scores[s, k].item() / (step + 1) ** length_penalty, history[s, k].tolist()) for k in range(beam)]
        if step + 1 == max_length or not unfinished.any():
            break
        rows = parents + torch.arange(len(alive))[:, None] * beam
        sentences = None
        if not unfinished.all():
            sentences = unfinished.nonzero().flatten()
            alive, scores, tokens, history, rows = (t[sentences] for t in (alive, scores, tokens, history, rows))
        state.select(rows.flatten(), sentences)
    return [max(hypotheses, key=lambda h: h[0])[1] for hypotheses in ended]
