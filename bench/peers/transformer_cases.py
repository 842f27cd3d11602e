"""The peers' side of the Transformer's cases: training steps, beam search, and the memory of a long step."""

import functools
import importlib.metadata
import importlib.util
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional

import beam_model
from cases import Case
from transformer import Transformer, beam_search

BOOK = {"source": 184, "target": 201, "width": 32, "ffn": 64, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "bias": False}
BASE = {"source": 8000, "target": 8000, "width": 512, "ffn": 2048, "heads": 8, "encoder_layers": 6, "decoder_layers": 6, "bias": False}
BOOK |= {"dropout": 0.1, "pre_norm": False, "tied": False}
BASE |= {"dropout": 0.1, "pre_norm": False, "tied": False}


def size_arrays(z):
    """Sizes and switches as inputs of our side."""
    return {"size." + name: numpy.array([value], numpy.float32 if name == "dropout" else numpy.int32) for name, value in z.items()}


class TransformerStep(Case):
    """Teacher forcing, loss over the number of target steps, clipping to norm 1, Adam."""

    tolerance = 1e-4

    def inputs(self):
        torch.manual_seed(9)
        rng = numpy.random.default_rng(10)
        z, (s, t) = self.sizes, self.steps
        source_lens, target_lens = self.lengths(rng)
        rows = len(source_lens)
        ids = {"source": rng.integers(4, z["source"], (rows, s))}
        ids |= {name: rng.integers(4, z["target"], (rows, t)) for name in ("target_in", "targets")}
        ids["source"][numpy.arange(s)[None] >= source_lens[:, None]] = 1
        ids |= {"source_lens": source_lens, "target_lens": target_lens, "compared": numpy.array([self.compared])}
        data = Transformer(z).arrays() | size_arrays(z) | {"rate": numpy.array([self.rate], numpy.float32)}
        return data | {name: v.astype(numpy.int32) for name, v in ids.items()}

    def peer(self, inputs):
        case = self

        class Peer:
            def __init__(self):
                self.ids = {name: torch.tensor(inputs[name]).long() for name in ("source", "target_in", "targets")}
                s, t = case.steps
                self.mask = (torch.arange(s) < torch.tensor(inputs["source_lens"])[:, None])[:, None, None]
                self.counted = torch.arange(t) < torch.tensor(inputs["target_lens"])[:, None]
                if self.mask.all():
                    self.mask = None  # which makes attention a little faster
                self.start(case.sizes["dropout"])

            def start(self, dropout):
                self.model = self.optimizer = None  # free its memory first
                self.model = Transformer(case.sizes | {"dropout": dropout}).fill(inputs)
                self.optimizer = torch.optim.Adam(self.model.parameters(), lr=case.rate, fused=True)

            def run(self):
                self.optimizer.zero_grad()
                y = self.model.features(self.ids["source"], self.mask, self.ids["target_in"])
                logits = self.model.output(y[self.counted])  # no work for positions that the loss ignores
                loss = functional.cross_entropy(logits, self.ids["targets"][self.counted], reduction="sum") / case.steps[1]
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                return loss

            def results(self):
                self.start(0.0)
                losses = torch.stack([self.run().detach() for _ in range(case.compared)]).numpy()
                self.start(case.sizes["dropout"])
                return {"losses": losses}

        return Peer()


class BookStep(TransformerStep):
    """Lengths as in the book's 601 pairs."""

    sizes, rate, compared, repeats, our_repeats, target = BOOK, 5e-3, 10, 5, 20, ">= 5 and <= 3 ms"

    def __init__(self, steps):
        self.steps = steps
        trimmed = "10 steps, padded" if steps == (10, 10) else f"trimmed to {steps[0]} and {steps[1]} steps"
        self.name = f"transformer-step-{steps[0]}-{steps[1]}"
        self.title = f"training step of the book's Transformer, batch 64, {trimmed} (dropout 0.1, clipping, Adam)"

    def lengths(self, rng):
        return rng.choice([3, 4, 5], 64, p=[0.06, 0.83, 0.11]), rng.choice([3, 4, 5, 6, 7], 64, p=[0.28, 0.32, 0.32, 0.06, 0.02])


class BaseStep(TransformerStep):
    name, title = "transformer-base-step", "training step of a Transformer, d 512, 6+6 layers, batch 32 of 32 tokens, 8000 words"
    sizes, rate, compared, steps, repeats, our_repeats, rounds = BASE, 1e-4, 3, (32, 32), 1, 1, 5
    long, probes, target = True, 1, ">= 1, >= 70 % of peak"

    def lengths(self, rng):
        return numpy.full(32, 32), numpy.full(32, 32)

    @property
    def flop(self):
        """Products and attention, forward once and backward twice as much; recomputed work does not count."""
        z, n, d = self.sizes, 32, self.sizes["width"]
        block, attention = 4 * d * d, 2 * n * d
        encoder = z["encoder_layers"] * (block + 2 * d * z["ffn"] + attention)
        decoder = z["decoder_layers"] * (2 * block + 2 * d * z["ffn"] + 1.5 * attention)  # half for causal attention
        return 6 * 32 * n * (encoder + decoder + d * z["target"])


class Beam(Case):
    """Whole outputs must be the same for nearly all sentences: a tie in the last bit may change the course of a search."""

    name, title = "transformer-beam", "beam-5 decoding of Multi30k's 1000 test sentences, time of one, Transformer d 128, 4+4 layers"
    units, repeats, our_repeats, rounds, target = 1000, 1, 1, 5, ">= 5"
    long, probes = True, 1
    beam, length_penalty, max_length = 5, 0.75, 50
    rows = 100  # sentences that the peer decodes at once; 50 and 250 cost it more processor time
    same = 0.98
    weights = beam_model.ROOT / "build" / "peers-beam.safetensors"

    def missing(self):
        folder = beam_model.data_folder()
        absent = [name for name in ("test_2016_flickr.en", "train.en", "train.de") if not (folder / name).exists()]
        return f"{folder / absent[0]} is missing (QKV_TEST_DATA names the folder)" if absent else ""

    def inputs(self):
        if not self.weights.exists():
            print("beam model: training for 5 minutes, only once", file=sys.stderr, flush=True)
            beam_model.train(self.weights, 5)
        arrays, self.sizes, words = beam_model.load(self.weights)
        vocabulary = {word: i for i, word in enumerate(words)}
        rows = sorted((beam_model.encode(line, vocabulary) for line in beam_model.lines("test_2016_flickr.en")), key=len)
        ids = {"source": beam_model.padded(rows).numpy(), "source_lens": numpy.array([len(row) for row in rows])}
        ids |= {"beam": numpy.array([self.beam]), "max_length": numpy.array([self.max_length])}
        data = arrays | size_arrays(self.sizes) | {"length_penalty": numpy.array([self.length_penalty], numpy.float64)}
        return data | {name: v.astype(numpy.int32) for name, v in ids.items()}

    def decoder(self, model):
        """The peer's search over (source, lens, beam, length_penalty, max_length) with a filled Transformer."""
        return functools.partial(beam_search, model)

    def peer(self, inputs):
        case = self

        class Peer:
            def __init__(self):
                self.decode = case.decoder(Transformer(case.sizes).fill(inputs).eval())
                self.source, self.lens = (torch.tensor(inputs[name]).long() for name in ("source", "source_lens"))

            def run(self):
                outputs = []
                for begin in range(0, len(self.lens), case.rows):
                    lens = self.lens[begin : begin + case.rows]
                    source = self.source[begin : begin + case.rows, : int(lens.max())]
                    outputs += self.decode(source, lens, case.beam, case.length_penalty, case.max_length)
                return outputs

            def results(self):
                """(sentences, longest), -1 after the end"""
                outputs = self.run()
                ids = numpy.full((len(outputs), case.max_length), -1, numpy.int32)
                for row, output in zip(ids, outputs):
                    row[: len(output)] = output
                return {"outputs": ids}

        return Peer()

    def agree(self, ours, theirs):
        same = numpy.mean(numpy.all(ours["outputs"] == theirs["outputs"], axis=1))
        print(f"{self.name}: {100 * same:.1f} % of {len(theirs['outputs'])} outputs are the same", flush=True)
        return same >= self.same


class BeamGenerate(Beam):
    """What users of PyTorch run: the library's generate() instead of our own search, on the same weights."""

    name, our_name = "transformer-beam-generate", Beam.name
    title = Beam.title + "; the peer is generate(num_beams=5) of the library transformers"
    rows = 64  # 32 and 100 are no faster, 8 and a static cache are much slower
    same = 0.995  # all 1000 were the same: the library has our rules, so only a tie in the last bit may differ

    @property
    def framework(self):
        return f"transformers {importlib.metadata.version('transformers')} on PyTorch"

    def missing(self):
        absent = "" if importlib.util.find_spec("transformers") else "the Python library transformers is not installed"
        return absent or super().missing()

    def decoder(self, model):
        import pegasus

        return functools.partial(pegasus.generate, pegasus.pegasus(model))


class LongStep(Case):
    """Ours alone, in its own process."""

    name, title = "transformer-long-step", "memory of a training step on 16384 tokens, causal, d 512, 6 layers, ffn 2048, 8000 words"
    memory, target = True, "<= 1.5 GB"

    def inputs(self):
        rng = numpy.random.default_rng(11)
        ids = {"tokens": rng.integers(4, 8000, (1, 16384)), "targets": rng.integers(4, 8000, (1, 16384))}
        return {name: v.astype(numpy.int32) for name, v in ids.items()}


ALL = [BookStep((10, 10)), BookStep((5, 7)), BaseStep(), Beam(), BeamGenerate(), LongStep()]
