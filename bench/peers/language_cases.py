"""The peers' side of the language models' cases: a training step at nanoGPT's setting for a CPU, and writing with a cache."""

import importlib.metadata
import importlib.util
import math

import numpy
import torch
from torch import nn
from torch.nn import functional

from cases import Case

NANO = {"vocabulary": 65, "context": 64, "width": 128, "ffn": 512, "heads": 4, "layers": 4, "bias": False}


class Block(nn.Module):
    """As in nanoGPT: queries, keys and values in one product, fused attention."""

    def __init__(self, z):
        super().__init__()
        width, bias = z["width"], z["bias"]
        self.heads = z["heads"]
        self.self_norm, self.ffn_norm = nn.LayerNorm(width, bias=bias), nn.LayerNorm(width, bias=bias)
        self.packed, self.out = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width, bias=bias)
        self.first, self.second = nn.Linear(width, z["ffn"], bias=bias), nn.Linear(z["ffn"], width, bias=bias)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.packed(self.self_norm(x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.second(functional.gelu(self.first(self.ffn_norm(x))))


class LanguageModel(nn.Module):
    def __init__(self, z):
        super().__init__()
        self.words, self.places = nn.Embedding(z["vocabulary"], z["width"]), nn.Embedding(z["context"], z["width"])
        self.blocks, self.norm = nn.ModuleList(Block(z) for _ in range(z["layers"])), nn.LayerNorm(z["width"], bias=z["bias"])
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.3 / math.sqrt(p.shape[1]))

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.words.weight)

    def arrays(self):
        """The parameters by their names in qkv."""
        out = {"model.embedding.weight": self.words.weight, "model.embedding.positions": self.places.weight}
        norms = {"model.norm": self.norm}
        for i, b in enumerate(self.blocks):
            name = f"model.{i}"
            norms |= {name + ".self_norm": b.self_norm, name + ".ffn_norm": b.ffn_norm}
            layers = {"self.to_out": b.out, "ffn.first": b.first, "ffn.second": b.second}
            for kind, p in b.packed.named_parameters():
                out |= {f"{name}.self.{part}.{kind}": t for part, t in zip(("to_q", "to_k", "to_v"), p.chunk(3))}
            out |= {f"{name}.{layer}.{kind}": p for layer, module in layers.items() for kind, p in module.named_parameters()}
        for name, norm in norms.items():
            out[name + ".gamma"] = norm.weight
            if norm.bias is not None:
                out[name + ".beta"] = norm.bias
        return {name: p.detach().numpy().copy() for name, p in out.items()}


def size_arrays(z):
    return {"size." + name: numpy.array([value], numpy.int32) for name, value in z.items()}


class LanguageStep(Case):
    name, title = "language-step", "training step at nanoGPT's setting for a CPU: 4 layers, width 128, 12 blocks of 64 characters (clipping, AdamW)"
    tolerance, repeats, our_repeats, rate, compared, target = 1e-4, 5, 10, 1e-3, 10, ">= 1.5"

    def inputs(self):
        torch.manual_seed(12)
        text = numpy.random.default_rng(13).integers(0, NANO["vocabulary"], (12, 65)).astype(numpy.int32)
        data = {"read": text[:, :-1].copy(), "wanted": text[:, 1:].copy(), "compared": numpy.array([self.compared], numpy.int32)}
        return data | LanguageModel(NANO).arrays() | size_arrays(NANO) | {"rate": numpy.array([self.rate], numpy.float32)}

    def peer(self, inputs):
        case = self

        class Peer:
            def __init__(self):
                self.read, self.wanted = (torch.tensor(inputs[name]).long() for name in ("read", "wanted"))
                self.start()

            def start(self):
                torch.manual_seed(12)
                self.model = LanguageModel(NANO)
                matrices, vectors = ([p for p in self.model.parameters() if (p.dim() >= 2) == wide] for wide in (True, False))
                groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
                self.optimizer = torch.optim.AdamW(groups, lr=case.rate, betas=(0.9, 0.99), fused=True)

            def run(self):
                self.optimizer.zero_grad()
                loss = functional.cross_entropy(self.model(self.read).flatten(0, 1), self.wanted.flatten())
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                return loss

            def results(self):
                self.start()
                losses = torch.stack([self.run().detach() for _ in range(case.compared)]).numpy()
                self.start()
                return {"losses": losses}

        return Peer()


class LanguageGenerate(Case):
    """The likeliest tokens after one prompt, by generate() of transformers with its cache, on the same weights."""

    name, title = "language-generate", "writing 200 tokens after a prompt of 32 with a cache, 4 layers, width 128, time of a token"
    sizes, prompt, new = NANO | {"context": 256, "bias": True}, 32, 200
    units, repeats, our_repeats, rounds, target = 200, 1, 10, 7, ">= 5"

    @property
    def framework(self):
        return f"generate() of transformers {importlib.metadata.version('transformers')} on PyTorch"

    def missing(self):
        return "" if importlib.util.find_spec("transformers") else "the Python library transformers is not installed"

    def inputs(self):
        torch.manual_seed(14)
        prompt = numpy.random.default_rng(15).integers(0, self.sizes["vocabulary"], (1, self.prompt)).astype(numpy.int32)
        data = {"prompt": prompt, "new": numpy.array([self.new], numpy.int32)}
        return data | LanguageModel(self.sizes).arrays() | size_arrays(self.sizes)

    def gpt2(self, inputs):
        from transformers import GPT2Config, GPT2LMHeadModel

        z = self.sizes
        config = GPT2Config(vocab_size=z["vocabulary"], n_positions=z["context"], n_embd=z["width"], n_layer=z["layers"], n_head=z["heads"],
                            n_inner=z["ffn"], activation_function="gelu", bos_token_id=None, eos_token_id=None)
        model = GPT2LMHeadModel(config).eval()
        t = lambda name: torch.tensor(inputs[name])
        with torch.no_grad():
            core = model.transformer
            core.wte.weight.copy_(t("model.embedding.weight"))
            core.wpe.weight.copy_(t("model.embedding.positions"))
            for i, block in enumerate(core.h):
                for theirs, ours in ((block.ln_1, "self_norm"), (block.ln_2, "ffn_norm")):
                    theirs.weight.copy_(t(f"model.{i}.{ours}.gamma"))
                    theirs.bias.copy_(t(f"model.{i}.{ours}.beta"))
                packed = ("to_q", "to_k", "to_v")
                block.attn.c_attn.weight.copy_(torch.cat([t(f"model.{i}.self.{p}.weight") for p in packed]).T)
                block.attn.c_attn.bias.copy_(torch.cat([t(f"model.{i}.self.{p}.bias") for p in packed]))
                for theirs, ours in ((block.attn.c_proj, "self.to_out"), (block.mlp.c_fc, "ffn.first"), (block.mlp.c_proj, "ffn.second")):
                    theirs.weight.copy_(t(f"model.{i}.{ours}.weight").T)
                    theirs.bias.copy_(t(f"model.{i}.{ours}.bias"))
            core.ln_f.weight.copy_(t("model.norm.gamma"))
            core.ln_f.bias.copy_(t("model.norm.beta"))
        return model

    def peer(self, inputs):
        case = self

        class Peer:
            def __init__(self):
                self.model, self.prompt = case.gpt2(inputs), torch.tensor(inputs["prompt"]).long()

            def run(self):
                with torch.no_grad():
                    mask = torch.ones_like(self.prompt)
                    return self.model.generate(self.prompt, attention_mask=mask, max_new_tokens=case.new, do_sample=False, use_cache=True,
                                               pad_token_id=0)

            def results(self):
                return {"written": self.run()[0, case.prompt :].to(torch.int32).numpy()}

        return Peer()

    def agree(self, ours, theirs):
        return numpy.array_equal(ours["written"], theirs["written"])


ALL = [LanguageStep(), LanguageGenerate()]
