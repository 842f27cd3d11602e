"""Runs qkv and its peers on the same inputs, interleaved, and writes the ratios to bench/RESULTS.md.

Started by bench/peers/run, which sets up the Python environment. No ratio is reported unless the results agree first.
"""

import argparse
import datetime
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases
import language_cases
import transformer_cases
import vision_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTES = "## Notes and later runs\n"
LIBRARY_PROGRAMS = (("Matrix products against oneDNN, one thread", "gemm_vs_dnnl"), ("Attention against oneDNN's sgemm rate", "attention_bench"))


class OurSide:
    """The program bench/peers/side.cpp, through a pipe."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer.endswith("ok"):
            sys.exit(f"qkv's side failed at '{line}': {answer or 'it ended'}")
        return answer[:-2].strip()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def agree(case, ours, theirs):
    """Exits unless every result agrees within the case's tolerance of its largest element, or by the case's own rule."""
    if hasattr(case, "agree"):
        if not case.agree(ours, theirs):
            sys.exit(f"{case.name}: the results do not agree; nothing is reported")
        return
    for name, reference in theirs.items():
        mine = ours[name]
        if mine.shape != reference.shape:
            sys.exit(f"{case.name}: '{name}' has shape {mine.shape}, the peer's {reference.shape}; nothing is reported")
        worst = float(numpy.max(numpy.abs(mine.astype(float) - reference.astype(float)))) if mine.size else 0.0
        limit = case.tolerance * max(float(numpy.max(numpy.abs(reference))), 1e-30)
        if not worst <= limit:
            sys.exit(f"{case.name}: '{name}' differs by {worst:.3g}, allowed {limit:.3g}; nothing is reported")


def best_setting(case, peer):
    """The peer's better thread count, by its median."""
    def median(threads):
        torch.set_num_threads(threads)
        peer.run()
        return statistics.median(timed(peer.run, case) for _ in range(case.probes))
    return min((1, os.cpu_count() or 1), key=median)


def timed(work, case):
    time.sleep(0.05)  # lets spinning threads of the other side go to sleep
    for _ in range(0 if case.long else (case.repeats + 4) // 5):
        work()
    start = time.perf_counter()
    for _ in range(case.repeats):
        work()
    return (time.perf_counter() - start) / case.repeats


def compare(case, side, folder, rounds):
    inputs = case.inputs()
    file = folder / "inputs.npz"
    numpy.savez(file, **inputs)
    side.ask(f"load {case.our_name or case.name} {file}")
    peer = case.peer(inputs)
    side.ask(f"results {folder / 'results.npz'}")
    agree(case, dict(numpy.load(folder / "results.npz")), peer.results())
    threads = best_setting(case, peer) if "PyTorch" in case.framework else 1
    torch.set_num_threads(threads)
    request = "once" if case.long else f"time {case.our_repeats}"
    side.ask(request)
    ours, theirs, peaks = [], [], []
    rounds = min(rounds, case.rounds or rounds)
    for _ in range(rounds):
        time.sleep(0.05)
        ours.append(float(side.ask(request)) / case.units)
        if case.flop:
            peaks.append(float(side.ask("peak")))
        theirs.append(timed(peer.run, case) / case.units)
    return ours, theirs, threads, max(peaks, default=0)


def measure_memory(case, program, folder):
    """Seconds and peak bytes of one piece of work in its own process."""
    side, file = OurSide(program), folder / "inputs.npz"
    numpy.savez(file, **case.inputs())
    side.ask(f"load {case.name} {file}")
    seconds, peak = float(side.ask("once")), float(side.ask("memory"))
    side.end()
    return seconds, peak


def describe(seconds):
    for unit, scale in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def machine():
    cpu = platform.processor() or platform.machine()
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            cpu = line.split(":")[1].strip()
            break
    return f"{cpu}, {os.cpu_count()} cores"


def time_row(case, side, arguments, folder):
    """A row of the table, and the same as a line of text."""
    ours, theirs, threads, peak = compare(case, side, folder, arguments.rounds)
    mine, peer = statistics.median(ours), statistics.median(theirs)
    ratio, best = peer / mine, min(theirs) / min(ours)
    who = f"{case.framework}, {threads} thread{'s' * (threads > 1)}"
    share = ""
    if case.flop:
        gflops = case.flop / min(ours) / 1e9
        share = f", {100 * gflops / peak:.0f} % of peak"
        print(f"{case.name}: best round {gflops:.1f} GFLOP/s of {peak:.1f}, the FMA peak between the rounds", flush=True)
    line = f"{case.title}: {describe(mine)}{share} against {describe(peer)} ({who}): {ratio:.2f} times "
    line += f"(best against best {best:.2f}), target {case.target}"
    return (case.title, describe(mine) + share, who, describe(peer), f"{ratio:.2f}", f"{best:.2f}", case.target), line


def memory_row(case, side, arguments, folder):
    seconds, peak = measure_memory(case, arguments.side, folder)
    text = f"{peak / 1e9:.2f} GB"
    line = f"{case.title}: peak {text}, the step took {describe(seconds)}, target {case.target}"
    return (case.title, text, "", "", "", "", case.target), line


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--skip", action="append", default=[], help="skip cases whose name contains this; may be repeated")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds per case")
    parser.add_argument("--side", default=str(ROOT / "build/bench/bench/peer_side"), help="the program for our side")
    parser.add_argument("--write", action="store_true", help="write bench/RESULTS.md")
    arguments = parser.parse_args()
    torch.set_flush_denormal(True)

    side, rows = OurSide(arguments.side), []
    for case in cases.ALL + transformer_cases.ALL + language_cases.ALL + vision_cases.ALL:
        if arguments.filter not in case.name or any(part in case.name for part in arguments.skip):
            continue
        if absent := case.missing():
            print(f"{case.title}: skipped, {absent}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            measure = memory_row if case.memory else time_row
            row, line = measure(case, side, arguments, pathlib.Path(folder))
        rows.append(row)
        print(line, flush=True)
    if arguments.write and not arguments.filter:
        side.end()
        write(rows, [library_text(title, name) for title, name in LIBRARY_PROGRAMS])


def library_text(title, name):
    """What a program of bench/ prints, as a section."""
    print(f"{title} ...", flush=True)
    done = subprocess.run([ROOT / "build/bench/bench" / name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{name} failed: {done.stdout}{done.stderr}")
    print(done.stdout, flush=True)
    return f"\n## {title}\n\n`build/bench/bench/{name}`:\n\n```\n{done.stdout}```\n"


def write(rows, sections):
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    text = f"""# Measured against peers

Made by `bench/peers/run --write` on {datetime.date.today()}: {machine()}; commit {commit or 'unknown'}; PyTorch {torch.__version__.split('+')[0]}.
Both sides ran alternately on the same inputs, after their results agreed; times are medians, and the peer has its better thread count
and flush-to-zero. The last ratio compares the best rounds, which a busy machine disturbs least. "Target" and "asked" are the goals that the
project set itself.

| work | qkv | peer | its time | times faster | best against best | target |
|---|---|---|---|---|---|---|
"""
    for row in rows:
        text += "| " + " | ".join(row) + " |\n"
    text += "".join(sections)
    results = ROOT / "bench" / "RESULTS.md"
    notes = (results.read_text(encoding="utf-8") if results.exists() else "").partition(NOTES)  # written by hand: kept
    results.write_text(text + "\n" + notes[1] + notes[2], encoding="utf-8")


if __name__ == "__main__":
    main()
