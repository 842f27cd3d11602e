"""OPUS-MT Chinese to English by qkv and by CTranslate2, both in float32, on the same lines: outputs compared, times interleaved.

  python3 opus_mt.py --qkv build/release/bin/qkv --folder opus-mt-zh-en --peer CT2_FOLDER --data cmn.txt --lines 500 --batch 32

--folder is the Hugging Face folder, --peer CTranslate2's of the same weights with sentencepiece.model beside it (its float32 computation is
asked for). --data has tab-separated pairs, English first. CTranslate2 is timed without loading its model, in the better of two workers and
two threads; qkv's time includes opening the folder. Needs ctranslate2, sentencepiece and, for BLEU, sacrebleu.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time

import ctranslate2
import sentencepiece

parser = argparse.ArgumentParser()
parser.add_argument("--qkv")
parser.add_argument("--folder")
parser.add_argument("--peer", required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--lines", type=int, default=500)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--beam", type=int, default=4)
parser.add_argument("--max-length", type=int, default=256)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--outputs", help="writes and reads CTranslate2's outputs there instead of computing them again")
a = parser.parse_args()

pairs = [line.rstrip("\n").split("\t")[:2] for line in open(a.data, encoding="utf-8-sig")]
pairs = random.Random(a.seed).sample(pairs, a.lines)
source, reference = [p[1] for p in pairs], [p[0] for p in pairs]
pieces = sentencepiece.SentencePieceProcessor(model_file=os.path.join(a.peer, "sentencepiece.model"))
tokens = [pieces.encode(line, out_type=str) for line in source]  # CTranslate2 appends </s> itself (add_source_eos)


def peer(workers, threads):
    model = ctranslate2.Translator(a.peer, inter_threads=workers, intra_threads=threads, compute_type="float32")

    def run():
        begin = time.perf_counter()
        found = model.translate_batch(tokens, beam_size=a.beam, max_batch_size=a.batch, max_decoding_length=a.max_length, length_penalty=1,
                                      return_scores=True)
        return time.perf_counter() - begin, found

    return run


def ours():
    begin = time.perf_counter()
    out = subprocess.run([a.qkv, "translate", "--model", a.folder, "--beam", str(a.beam), "--length-penalty", "1", "--rows", str(a.batch),
                          "--max-length", str(a.max_length), "--json", "--quiet"], input="\n".join(source) + "\n", capture_output=True,
                         text=True, check=True).stdout
    return time.perf_counter() - begin, [json.loads(line) for line in out.splitlines()]


def text(hypothesis):
    return "".join(hypothesis).replace("\u2581", " ").strip()


sides = {"2 workers": peer(2, 1), "2 threads": peer(1, 2)}
times = {name: [] for name in sides}
times["qkv"] = []
theirs = mine = None
for _ in range(a.rounds):
    for name, run in sides.items():
        seconds, found = run()
        times[name].append(seconds)
        theirs = found
    if a.qkv:
        seconds, mine = ours()
        times["qkv"].append(seconds)
peer_text = [text(t.hypotheses[0]) for t in theirs]
if a.outputs:
    with open(a.outputs, "w", encoding="utf8") as f:
        json.dump([{"source": s, "text": t, "score": r.scores[0], "tokens": r.hypotheses[0]} for s, t, r in zip(source, peer_text, theirs)], f,
                  ensure_ascii=False, indent=1)
words = sum(len(t.split()) for t in peer_text)
for name, all_times in times.items():
    if all_times:
        best = sorted(all_times)[len(all_times) // 2]
        print(f"{name:10} {best:8.2f} s  {a.lines / best:6.1f} sentences/s  {words / best:7.1f} words/s")
if mine:
    my_text = [t["translations"][0]["text"] if "translations" in t else t["text"] for t in mine]
    equal = sum(x == y for x, y in zip(my_text, peer_text))
    print(f"equal outputs: {equal} of {a.lines}")
    for line, (x, y, t) in enumerate(zip(my_text, peer_text, theirs)):
        if x != y:
            print(f"  {line + 1}: qkv {x!r}, CTranslate2 {y!r} ({t.scores[0]:.5f})")
    print("ratio to the better of CTranslate2:",
          round(min(sorted(times[n])[len(times[n]) // 2] for n in sides) / sorted(times["qkv"])[len(times["qkv"]) // 2], 3))
try:
    import sacrebleu
    print("CTranslate2", sacrebleu.corpus_bleu(peer_text, [reference]))
    if mine:
        print("qkv", sacrebleu.corpus_bleu(my_text, [reference]))
except ImportError:
    pass
