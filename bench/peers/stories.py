"""stories15M by qkv, by transformers and by llama2.c's own program, in float32: the same greedy tokens, and tokens per second side by side.

  python3 stories.py --qkv build/release/bin/qkv --model FOLDER --pieces tokenizer.model --made NEW_FOLDER --run PROGRAM [--run PROGRAM]

--model has llama2.c's model.bin and tokenizer.bin; --pieces is the SentencePiece model of its tokenizer, --run a program built from
llama2.c's run.c, --made where the folder for transformers is written. Speed is that of tokens after the first ones: the time of a long text
less that of a short one, so that opening files does not count; rounds are interleaved. --clock cpu counts processor time, for one thread on a
machine that others use. Needs torch, transformers and sentencepiece.
"""

import argparse
import json
import os
import resource
import shutil
import struct
import subprocess
import time

import numpy
import sentencepiece
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--qkv", required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--pieces", required=True)
parser.add_argument("--made", required=True)
parser.add_argument("--run", action="append", default=[])
parser.add_argument("--prompt", default="Once upon a time")
parser.add_argument("--tokens", type=int, default=200)
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
a = parser.parse_args()
SHORT = 20


def converted():
    """The same weights as transformers wants them: rotation of halves instead of neighbours."""
    with open(os.path.join(a.model, "model.bin"), "rb") as f:
        dim, hidden, layers, heads, key_heads, words, length = struct.unpack("7i", f.read(28))
        floats = numpy.frombuffer(f.read(), dtype=numpy.float32)
    at, width, tied = 0, dim // heads, words > 0
    words = abs(words)

    def take(*shape):
        nonlocal at
        count = int(numpy.prod(shape))
        x = torch.from_numpy(floats[at:at + count].reshape(shape).copy())
        at += count
        return x

    halves = lambda x, count: x.view(count, width // 2, 2, dim).transpose(1, 2).reshape(x.shape)
    w = {"model.embed_tokens.weight": take(words, dim)}
    kinds = [("input_layernorm", (dim,), 0), ("self_attn.q_proj", (dim, dim), heads), ("self_attn.k_proj", (key_heads * width, dim), key_heads),
             ("self_attn.v_proj", (key_heads * width, dim), 0), ("self_attn.o_proj", (dim, dim), 0), ("post_attention_layernorm", (dim,), 0),
             ("mlp.gate_proj", (hidden, dim), 0), ("mlp.down_proj", (dim, hidden), 0), ("mlp.up_proj", (hidden, dim), 0)]
    for name, shape, turned in kinds:
        for i in range(layers):
            x = take(*shape)
            w[f"model.layers.{i}.{name}.weight"] = halves(x, turned) if turned else x
    w["model.norm.weight"] = take(dim)
    at += length * width
    w["lm_head.weight"] = w["model.embed_tokens.weight"] if tied else take(words, dim)
    config = LlamaConfig(vocab_size=words, hidden_size=dim, intermediate_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
                         num_key_value_heads=key_heads, max_position_embeddings=length, rms_norm_eps=1e-5, tie_word_embeddings=tied,
                         bos_token_id=1, eos_token_id=2)
    model = LlamaForCausalLM(config)
    model.load_state_dict(w)
    model.generation_config = GenerationConfig(bos_token_id=1, eos_token_id=2)
    model.eval().save_pretrained(a.made)
    shutil.copy(a.pieces, os.path.join(a.made, "tokenizer.model"))
    return model


def now():
    """Seconds on the chosen clock, of this process and those that it has waited for."""
    if a.clock == "wall":
        return time.perf_counter()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(work):
    begin = now()
    found = work()
    return now() - begin, found


def ours(folder, count):
    command = [a.qkv, "generate", "--model", folder, "--prompt", a.prompt, "--temperature", "0", "--max-tokens", str(count), "--json", "--quiet",
               "--threads", str(a.threads)]
    seconds, done = timed(lambda: subprocess.run(command, capture_output=True, text=True, check=True))
    return seconds, json.loads(done.stdout)


def c_program(program, count):
    command = [program, os.path.join(a.model, "model.bin"), "-z", os.path.join(a.model, "tokenizer.bin"), "-t", "0", "-n",
               str(len(prompt) + count - 1), "-i", a.prompt]
    threads = {"OMP_NUM_THREADS": str(a.threads), "OMP_WAIT_POLICY": "passive"}
    seconds, done = timed(lambda: subprocess.run(command, capture_output=True, check=True, env=os.environ | threads))
    return seconds, done.stdout.decode().removesuffix("\n")


def theirs(count):
    def work():
        with torch.no_grad():
            return model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), do_sample=False, max_new_tokens=count)

    seconds, ids = timed(work)
    return seconds, ids[0, len(prompt):].tolist()


torch.set_num_threads(a.threads)
model = converted()
pieces = sentencepiece.SentencePieceProcessor(model_file=a.pieces)
prompt = [1] + pieces.encode(a.prompt)
wanted = theirs(a.tokens)[1]
text = a.prompt + ours(a.model, a.tokens)[1]["texts"][0]["text"]
names = {"qkv, llama2.c's files": a.model, "qkv, Hugging Face folder": a.made}
for name, folder in names.items():
    found = ours(folder, a.tokens)[1]["texts"][0]
    print(f"{name}: {len(found['tokens'])} tokens; text equal to transformers':", a.prompt + found["text"] == pieces.decode(prompt[1:] + wanted))
for program in a.run:
    print(f"{os.path.basename(program)}: text equal to qkv's:", c_program(program, a.tokens)[1] == text)

sides = {name: (lambda n, folder=folder: ours(folder, n)[0]) for name, folder in names.items()}
sides |= {"llama2.c " + os.path.basename(program): (lambda n, program=program: c_program(program, n)[0]) for program in a.run}
sides["transformers"] = lambda n: theirs(n)[0]
speeds = {name: [] for name in sides}
for _ in range(a.rounds):
    for name, run in sides.items():
        speeds[name].append((a.tokens - SHORT) / (run(a.tokens) - run(SHORT)))
for name, all_speeds in speeds.items():
    ordered = sorted(all_speeds)
    print(f"{name:26} {ordered[len(ordered) // 2]:8.1f} tokens/s (median), {ordered[-1]:8.1f} (best)")
