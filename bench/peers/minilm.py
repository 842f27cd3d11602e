"""all-MiniLM-L6-v2 by qkv, by transformers and by sentence-transformers on the same texts: results compared, times interleaved.

  python3 minilm.py --qkv build/release/bin/qkv --folder all-MiniLM-L6-v2 --data cmn.txt --lines 1000

--data has a text in the first column of each line. qkv's time includes starting and opening the folder, sentence-transformers' does not; it
has its better number of threads. Needs torch, transformers and sentence-transformers.
"""

import argparse
import os
import random
import resource
import subprocess
import tempfile
import time

import numpy
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

parser = argparse.ArgumentParser()
parser.add_argument("--qkv", required=True)
parser.add_argument("--folder", required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--lines", type=int, default=1000)
parser.add_argument("--compared", type=int, default=8, help="texts whose states and maps are compared")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--seed", type=int, default=1)
a = parser.parse_args()

lines = [line.rstrip("\n").split("\t")[0] for line in open(a.data, encoding="utf-8-sig")]
lines = random.Random(a.seed).sample(lines, a.lines)
longest = sorted(lines, key=len)[-a.compared // 2:]
compared = longest + lines[:a.compared - len(longest)]
folder = tempfile.mkdtemp()


def run(*arguments):
    return subprocess.run([a.qkv, *arguments, "--quiet"], capture_output=True, text=True, check=True).stdout


def worst(found, wanted):
    """The largest difference, by the largest element of what is wanted."""
    return float(numpy.abs(found - wanted).max() / numpy.abs(wanted).max())


tokenizer = AutoTokenizer.from_pretrained(a.folder)
eager = AutoModel.from_pretrained(a.folder, attn_implementation="eager").eval()
texts, states, maps = os.path.join(folder, "texts"), os.path.join(folder, "states.npz"), os.path.join(folder, "maps.npz")
with open(texts, "w", encoding="utf8") as f:
    f.write("\n".join(compared) + "\n")
run("embed", "--model", a.folder, "--states", texts, "-o", states)
found = numpy.load(states)
state_error = map_error = 0
for i, text in enumerate(compared):
    with torch.no_grad():
        y = eager(**tokenizer(text, return_tensors="pt"), output_attentions=True)
    state_error = max(state_error, worst(found[f"states.{i + 1}"], y.last_hidden_state[0].numpy()))
    run("inspect", "--model", a.folder, text, "-o", maps)
    map_error = max(map_error, worst(numpy.load(maps)["encoder"], torch.cat(y.attentions).numpy()))
print(f"states of {len(compared)} texts within {state_error:.2g}, their {len(y.attentions)} x {y.attentions[0].shape[1]} maps within {map_error:.2g}"
      " of transformers', by the largest element")

peer = SentenceTransformer(a.folder, device="cpu")
source, vectors = os.path.join(folder, "lines"), os.path.join(folder, "vectors.npy")
with open(source, "w", encoding="utf8") as f:
    f.write("\n".join(lines) + "\n")


def spent(who):
    use = resource.getrusage(who)
    return use.ru_utime + use.ru_stime


def ours():
    begin, before = time.perf_counter(), spent(resource.RUSAGE_CHILDREN)
    run("embed", "--model", a.folder, source, "-o", vectors)
    return time.perf_counter() - begin, spent(resource.RUSAGE_CHILDREN) - before


def theirs(threads):
    torch.set_num_threads(threads)
    begin, before = time.perf_counter(), spent(resource.RUSAGE_SELF)
    out = peer.encode(lines, batch_size=a.batch, show_progress_bar=False)
    return time.perf_counter() - begin, spent(resource.RUSAGE_SELF) - before, out


times, work, other, other_work = [], [], {1: [], 2: []}, {1: [], 2: []}
for _ in range(a.rounds):
    seconds, used = ours()
    times.append(seconds)
    work.append(used)
    for threads in other:
        seconds, used, wanted = theirs(threads)
        other[threads].append(seconds)
        other_work[threads].append(used)
found = numpy.load(vectors)
print(f"vectors of {len(lines)} texts: largest difference {numpy.abs(found - wanted).max():.2g}")
threads = min(other, key=lambda t: min(other[t]))
middle = lambda x: sorted(x)[len(x) // 2]
print(f"{len(lines)} texts: qkv {len(lines) / middle(times):.0f} per second, sentence-transformers ({threads} threads, batch {a.batch}) "
      f"{len(lines) / middle(other[threads]):.0f} per second: {middle(other[threads]) / middle(times):.2f} times, best against best "
      f"{min(other[threads]) / min(times):.2f}")
print(f"processor time: qkv {min(work):.2f} s, with the start and opening the folder; sentence-transformers "
      f"{min(min(other_work[t]) for t in other_work):.2f} s")
