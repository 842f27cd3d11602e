"""The peers' side of every case: inputs, the same work written for the peer, and the results that must agree."""

import numpy
import torch
from torch import nn


class Case:
    framework = "PyTorch"
    our_name = ""      # name of the case on our side, if different
    tolerance = 1e-5   # relative to the largest element
    repeats = 20       # of the peer, per round
    our_repeats = 100  # of ours, per round
    units = 1          # pieces of work per repetition
    rounds = None      # the most rounds, for cases that take seconds each
    long = False       # a repetition takes seconds: one per round, without a warm-up
    probes = 5         # timings of the peer per thread count
    flop = 0           # operations per repetition: if given, the share of the FMA peak is reported
    memory = False     # its peak memory is measured, not its time
    target = ""

    def missing(self):
        """What is missing to run this case, or nothing."""
        return ""


class RecordedOp(Case):
    name, title = "recorded-op", "a recorded op on 8 elements, forward + backward"
    units, repeats, our_repeats, target = 100, 80, 4000, ">= 20 and <= 200 ns"

    def inputs(self):
        return {"w": numpy.ones(8, numpy.float32), "c": numpy.linspace(0.9, 1.1, 8, dtype=numpy.float32)}

    def peer(self, inputs):
        class Peer:
            def __init__(self):
                self.w, self.c = torch.tensor(inputs["w"], requires_grad=True), torch.tensor(inputs["c"])

            def run(self):
                self.w.grad = None
                y = self.w
                for _ in range(100):
                    y = y * self.c
                y.backward(self.c)

            def results(self):
                self.run()
                return {"gradient": self.w.grad.numpy()}

        return Peer()


class PerceptronStep(Case):
    name, title = "perceptron-step", "training step of a 640 x 32 -> 64 -> 32 -> 201 perceptron (cross-entropy, clipping, Adam)"
    tolerance, repeats, our_repeats, target = 1e-4, 5, 20, ">= 3"

    def inputs(self):
        torch.manual_seed(3)
        model = self.model()
        data = {name: p.detach().numpy() for name, p in model.named_parameters()}
        return data | {"x": torch.randn(640, 32).numpy(), "targets": torch.randint(201, (640,)).numpy().astype(numpy.int32)}

    @staticmethod
    def model():
        return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 201))

    def peer(self, inputs):
        model = self.model()
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(torch.tensor(inputs[name]))

        class Peer:
            def __init__(self):
                self.x, self.targets = torch.tensor(inputs["x"]), torch.tensor(inputs["targets"]).long()
                self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

            def run(self):
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(self.x), self.targets)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                self.optimizer.step()
                return loss

            def results(self):
                return {"losses": torch.stack([self.run().detach() for _ in range(10)]).numpy()}

        return Peer()


class Attention(Case):
    """scaled_dot_product_attention, width 64; without dropout when results are compared."""

    def __init__(self, kind, n, heads, causal, dropout=0.0):
        self.kind, self.n, self.heads, self.causal, self.dropout = kind, n, heads, causal, dropout
        words = ("causal" if causal else "plain") + (f", dropout {dropout}" if dropout else "")
        self.name = f"attention-{kind}-{n}-{'causal' if causal else 'plain'}"
        what = "forward" if kind == "forward" else "forward + backward"
        self.title = f"attention {what}, n {n}, {heads} heads of 64, {words}"
        work = n * n * heads * (5 if kind == "training" else 1)
        self.repeats = self.our_repeats = max(1, int(2e8 / work))
        self.rounds = 3 if kind == "training" and n > 10000 else None
        self.target = ">= 1.5" if causal or kind == "training" else ">= 1.3"

    def inputs(self):
        torch.manual_seed(4)
        data = {name: torch.randn(1, self.heads, self.n, 64).numpy() for name in ("q", "k", "v", "dy")}
        return data | {"causal": numpy.array([self.causal], numpy.int32), "dropout": numpy.array([self.dropout], numpy.float32)}

    def peer(self, inputs):
        case = self

        class Peer:
            def __init__(self):
                training = case.kind == "training"
                self.q, self.k, self.v = (torch.tensor(inputs[name], requires_grad=training) for name in "qkv")
                self.dy = torch.tensor(inputs["dy"])

            def forward(self, dropout):
                return nn.functional.scaled_dot_product_attention(self.q, self.k, self.v, is_causal=case.causal, dropout_p=dropout)

            def gradients(self, dropout):
                self.q.grad = self.k.grad = self.v.grad = None
                self.forward(dropout).backward(self.dy)

            def run(self):
                if case.kind == "training":
                    self.gradients(case.dropout)
                else:
                    with torch.no_grad():
                        self.forward(0.0)

            def results(self):
                if case.kind == "forward":
                    with torch.no_grad():
                        return {"output": self.forward(0.0).numpy()}
                self.gradients(0.0)
                return {"dq": self.q.grad.numpy(), "dk": self.k.grad.numpy(), "dv": self.v.grad.numpy()}

        return Peer()


class LearnedPooling(Case):
    name, title = "learned-pooling", "the book's learned Nadaraya-Watson pooling, 50 points, 5 epochs"
    tolerance, target = 1e-4, ">= 50"

    def inputs(self):
        rng = numpy.random.default_rng(5)
        x = numpy.sort(rng.random(50) * 5)
        return {"x": x, "y": 2 * numpy.sin(x) + x**0.8 + rng.normal(0, 0.5, 50), "w": numpy.array([0.6])}

    def peer(self, inputs):
        class Peer:
            def __init__(self):
                x, y = torch.tensor(inputs["x"], dtype=torch.float32), torch.tensor(inputs["y"], dtype=torch.float32)
                others = (1 - torch.eye(50)).bool()
                self.x, self.y = x, y
                self.keys, self.values = x.repeat(50, 1)[others].reshape(50, -1), y.repeat(50, 1)[others].reshape(50, -1)

            def run(self):
                w = torch.tensor(inputs["w"], dtype=torch.float32, requires_grad=True)
                optimizer = torch.optim.SGD([w], lr=0.5)
                losses = []
                for _ in range(5):
                    optimizer.zero_grad()
                    weights = torch.softmax(-(((self.x[:, None] - self.keys) * w) ** 2) / 2, 1)
                    loss = ((torch.bmm(weights[:, None], self.values[:, :, None]).reshape(-1) - self.y) ** 2).sum()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.detach())
                return losses, w

            def results(self):
                losses, w = self.run()
                return {"losses": torch.stack(losses).double().numpy(), "w": w.detach().double().numpy()}

        return Peer()


class LeaveOneOut(Case):
    name, title, framework = "leave-one-out-bandwidth", "leave-one-out bandwidth, n = 1000, one dimension", "statsmodels"
    rounds = 3
    tolerance, repeats, our_repeats, target = 1e-3, 1, 10, ">= 500"

    def inputs(self):
        rng = numpy.random.default_rng(6)
        x = rng.random(1000) * 5
        return {"x": x, "y": 2 * numpy.sin(x) + x**0.8 + rng.normal(0, 0.5, 1000)}

    def peer(self, inputs):
        from statsmodels.nonparametric.kernel_regression import KernelReg

        class Peer:
            def run(self):
                return KernelReg(inputs["y"], inputs["x"], "c", reg_type="lc", bw="cv_ls").bw

            def results(self):
                return {"bandwidth": numpy.array(self.run())}

        return Peer()


class Bahdanau(nn.Module):
    """The book's encoder and attention decoder, with the keys projected once per sequence. Names are those of qkv's parameters."""

    SIZES = {"source": 184, "target": 201, "embed": 32, "hidden": 32}

    def __init__(self, dropout):
        super().__init__()
        z = self.SIZES
        self.source, self.target = nn.Embedding(z["source"], z["embed"]), nn.Embedding(z["target"], z["embed"])
        self.encoder = nn.GRU(z["embed"], z["hidden"], 2, batch_first=True, dropout=dropout)
        self.W_q, self.W_k, self.w_v = (nn.Linear(z["hidden"], n, bias=False) for n in (z["hidden"], z["hidden"], 1))
        self.decoder = nn.GRU(z["embed"] + z["hidden"], z["hidden"], 2, batch_first=True, dropout=dropout)
        self.output, self.drop = nn.Linear(z["hidden"], z["target"]), nn.Dropout(dropout)

    def forward(self, source, hidden_keys, target):
        states, h = self.encoder(self.source(source))
        keys, outputs = self.W_k(states), []
        for embedded in self.target(target).unbind(1):
            scores = self.w_v(torch.tanh(self.W_q(h[-1])[:, None] + keys))[..., 0].masked_fill(hidden_keys, float("-inf"))
            context = torch.bmm(self.drop(torch.softmax(scores, -1))[:, None], states)
            y, h = self.decoder(torch.cat((context, embedded[:, None]), -1), h)
            outputs.append(y)
        return self.output(torch.cat(outputs, 1))

    def qkv_parameters(self):
        """(name in qkv, parameter)"""
        for name, p in self.named_parameters():
            part, rest = name.split(".")
            if part in ("source", "target"):
                yield {"source": "encoder", "target": "decoder"}[part] + ".embedding.weight", p
            elif part in ("encoder", "decoder"):
                yield f"{part}.recurrent.layers.{rest[-1]}.{rest[:-3]}", p
            elif part == "output":
                yield name, p
            else:
                yield f"decoder.attention.{part}", p


class BahdanauStep(Case):
    """Lengths as in the book's 601 pairs; the encoder reads the padding, as the book's does."""

    tolerance, repeats, our_repeats, target = 1e-4, 5, 20, ">= 8"

    def __init__(self, steps):
        self.steps = steps
        trimmed = "10 steps, padded" if steps == (10, 10) else f"trimmed to {steps[0]} and {steps[1]} steps"
        self.name = f"bahdanau-step-{steps[0]}-{steps[1]}"
        self.title = f"training step of the book's Bahdanau model, batch 64, {trimmed} (dropout 0.1, clipping, Adam)"

    def inputs(self):
        torch.manual_seed(7)
        rng = numpy.random.default_rng(8)
        s, t = self.steps
        source_lens = rng.choice([3, 4, 5], 64, p=[0.06, 0.83, 0.11])
        target_lens = rng.choice([3, 4, 5, 6, 7], 64, p=[0.28, 0.32, 0.32, 0.06, 0.02])
        data = {name: p.detach().squeeze(0).numpy() for name, p in Bahdanau(0).qkv_parameters()}  # w_v is a matrix of one row
        ids = {"source": rng.integers(4, 184, (64, s))}
        ids |= {name: rng.integers(4, 201, (64, t)) for name in ("target_in", "targets")}
        ids["source"][numpy.arange(s)[None] >= source_lens[:, None]] = 1
        return data | {name: v.astype(numpy.int32) for name, v in (ids | {"source_lens": source_lens, "target_lens": target_lens}).items()}

    def peer(self, inputs):
        steps = self.steps

        class Peer:
            def __init__(self):
                self.ids = {name: torch.tensor(inputs[name]).long() for name in ("source", "target_in", "targets")}
                self.hidden_keys = torch.arange(steps[0])[None] >= torch.tensor(inputs["source_lens"])[:, None]
                self.counted = (torch.arange(steps[1])[None] < torch.tensor(inputs["target_lens"])[:, None]).float()
                self.start(0.1)

            def start(self, dropout):
                self.model = Bahdanau(dropout)
                with torch.no_grad():
                    for name, p in self.model.qkv_parameters():
                        p.copy_(torch.tensor(inputs[name]).reshape(p.shape))
                self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.005, fused=True)

            def run(self):
                self.optimizer.zero_grad()
                logits = self.model(self.ids["source"], self.hidden_keys, self.ids["target_in"])
                losses = nn.functional.cross_entropy(logits.transpose(1, 2), self.ids["targets"], reduction="none")
                loss = (losses * self.counted).sum() / steps[1]
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                return loss

            def results(self):
                self.start(0.0)
                losses = torch.stack([self.run().detach() for _ in range(10)]).numpy()
                self.start(0.1)
                return {"losses": losses}

        return Peer()


ALL = [
    RecordedOp(),
    PerceptronStep(),
    BahdanauStep((10, 10)),
    BahdanauStep((5, 7)),
    *[Attention("forward", n, heads, causal) for causal in (False, True) for n, heads in ((512, 8), (1024, 8), (4096, 8), (16384, 2))],
    *[Attention("training", n, heads, causal, 0.1) for causal in (False, True) for n, heads in ((512, 8), (1024, 8), (4096, 2), (16384, 1))],
    LearnedPooling(),
    LeaveOneOut(),
]
