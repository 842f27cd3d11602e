"""The peers' side of every case: inputs, the same work in the peer's own words, and what must agree."""

import numpy
import torch
from torch import nn


class Case:
    framework = "PyTorch"
    tolerance = 1e-5   # of the largest element
    repeats = 20       # of the peer, a round
    our_repeats = 100  # of ours, a round
    units = 1          # pieces of work in a repetition
    target = ""


class RecordedOp(Case):
    name, title = "recorded-op", "a recorded op on 8 elements, forward + backward"
    units, our_repeats, target = 100, 200, ">= 20 and <= 200 ns"

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


ALL = [RecordedOp(), PerceptronStep()]
