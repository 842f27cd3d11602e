#!/usr/bin/env python3
"""How fast `qkv serve` answers, on loopback: start, edits, tiles of long maps, and a minute of wrk.

usage: measure.py PROGRAM MODELS [--wrk SECONDS]
MODELS is a folder with a translation run (of Multi30k's size, for the numbers in RESULTS.md) and, for the tiles, a
language run that reads 4,096 tokens.
"""
import argparse, glob, json, os, re, statistics, subprocess, time, urllib.request


def ask(url, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def milliseconds(work, count):
    took = []
    for i in range(count):
        begin = time.perf_counter()
        work(i)
        took.append(1000 * (time.perf_counter() - begin))
    return f"median {statistics.median(took):.1f} ms of {count}, fastest {min(took):.1f}, slowest {max(took):.1f}"


def memory(process):
    with open(f"/proc/{process.pid}/status") as lines:
        return re.search(r"VmRSS:\s+(\d+) kB", lines.read()).group(1)


options = argparse.ArgumentParser()
options.add_argument("program")
options.add_argument("models")
options.add_argument("--wrk", type=int, default=0)
options = options.parse_args()

begin = time.perf_counter()
server = subprocess.Popen([options.program, "serve", "--models", options.models, "--port", "0", "--no-training"],
                          stdout=subprocess.PIPE, text=True)
url = server.stdout.readline().strip().rstrip("/")
ask(url, "/health")
print(f"first answer {1000 * (time.perf_counter() - begin):.0f} ms after the start")
try:
    models = ask(url, "/api/v1/models")["models"]
    translation = next((m for m in models if m.get("task") == "translation"), None)
    language = next((m for m in models if m.get("task") == "language"), None)
    if translation:
        text = "two young men in blue shirts are standing on a wooden bridge over a river while an old woman with a dog " \
               "looks at them from the other side ."
        first = ask(url, "/api/v1/maps", {"model": translation["id"], "text": text})
        target = first["target"]
        print(f"{translation['name']}: {translation['parameters']} parameters, "
              f"{len(first['source_tokens'])} source and {len(first['output_tokens'])} target tokens")
        edit = lambda i: [{"name": "cross", "layer": 1 + i % 3, "head": 1 + i % 4, "do": ["off", "flat"][i % 2]}]
        body = lambda i: {"model": translation["id"], "text": text, "edits": edit(i)}
        print("edit, translated anew (beam 1):", milliseconds(lambda i: ask(url, "/api/v1/translate", {**body(i), "beam": 1}), 50))
        print("edit, translated anew (beam 4):", milliseconds(lambda i: ask(url, "/api/v1/translate", {**body(i), "beam": 4}), 50))
        print("edit, blocks of a given translation:", milliseconds(lambda i: ask(url, "/api/v1/blocks", {**body(i), "target": target}), 50))
        print("edit, maps of a given translation:", milliseconds(lambda i: ask(url, "/api/v1/maps", {**body(i), "target": target}), 50))
    if language:
        long = ("the cat sleeps and reads . " * 200)[:4096]
        took = []
        begin = time.perf_counter()
        seen = ask(url, "/api/v1/maps", {"model": language["id"], "text": long})
        print(f"{language['name']}: maps of {len(seen['source_tokens'])} tokens, asked once: "
              f"{1000 * (time.perf_counter() - begin):.0f} ms; server holds {memory(server)} kB")
        part = lambda i, **more: ask(url, "/api/v1/map", {"session": seen["session"], "name": "decoder", "layer": 1, "head": 1, **more})
        tile = lambda i: part(i, row=[256 * (i % 16), 256 * (i % 16) + 256], column=[256 * (i * 7 % 16), 256 * (i * 7 % 16) + 256], form="base64")
        print("tile of 256 x 256 exact weights:", milliseconds(tile, 50))
        print("overview, 256 x 256 cells of 16 x 16:", milliseconds(lambda i: part(i, cells=[256, 256], form="base64"), 10))
        for i in range(40):
            ask(url, "/api/v1/maps", {"model": language["id"], "text": long[i:] + long[:i]})
        print(f"after 40 more such texts the server holds {memory(server)} kB")
    if options.wrk:
        def script(name, body):
            path = f"/tmp/wrk-{os.getpid()}-{name}.lua"
            with open(path, "w") as out:
                out.write('wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n'
                          f"wrk.body = [[{json.dumps(body)}]]\n")
            return path
        points = script("regress", {"x": [0, 1, 2, 3, 4], "y": [1, 0, 2, 3, 1], "bandwidth": 0.5})
        asked = [("GET /health", [url + "/health"]),
                 ("POST /api/v1/regress", ["-s", points, url + "/api/v1/regress"]),
                 ("GET / (the page)", [url + "/"])]
        if translation:
            sentence = script("translate", {"model": translation["id"], "text": translation["examples"][0]})
            asked.append(("POST /api/v1/translate", ["-s", sentence, url + "/api/v1/translate"]))
        for what, more in asked:
            before = memory(server)
            out = subprocess.run(["wrk", "-t1", "-c32", f"-d{options.wrk}s", *more], capture_output=True, text=True).stdout
            rate = re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)
            bad = re.findall(r"(Non-2xx.*|Socket errors.*)", out)
            print(f"wrk, 32 connections, {options.wrk} s, {what}: {rate} requests per second, memory {before} -> {memory(server)} kB", *bad)
        for path in glob.glob(f"/tmp/wrk-{os.getpid()}-*.lua"):
            os.remove(path)
finally:
    server.terminate()
    server.wait()
