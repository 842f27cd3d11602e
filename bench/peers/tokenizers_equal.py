"""Compares qkv's ids with those of the `tokenizers` library, and the times of both.

    python3 bench/peers/tokenizers_equal.py build/bench/bench/encode_lines FOLDER [TEXT ...]

FOLDER holds a tokenizer.json. 10,000 lines: half of them from the TEXT files, the rest made of characters of many scripts, emoji, combining
marks, odd blanks and control characters. Needs `pip install tokenizers`.
"""

import random
import subprocess
import sys
import tempfile
import time
import unicodedata

from tokenizers import Tokenizer

SCRIPTS = [(0x621, 0x65F), (0xE01, 0xE5B), (0x900, 0x97F), (0x980, 0x9FE), (0xB82, 0xBFA), (0xAC00, 0xD7A3), (0x1100, 0x11FF), (0x3041, 0x30FF),
           (0xFF01, 0xFFDC), (0x400, 0x4FF), (0x370, 0x3FF), (0x591, 0x5F4), (0xC0, 0x24F), (0x1E00, 0x1EFF), (0x2000, 0x2BFF), (0x1D400, 0x1D7FF),
           (0x1F300, 0x1FAFF), (0x20000, 0x20100), (0xE000, 0xE010), (0x300, 0x36F), (1, 31), (0x7F, 0x9F), (0x2150, 0x24FF), (0xFB00, 0xFDFF),
           (0x4E00, 0x9FFF), (0x20, 0x7E)]
BLANKS = [" ", " ", "", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u200b", "\u2028", "\u0085"]


def made_line(chance):
    words = []
    for _ in range(chance.randint(1, 12)):
        low, high = chance.choice(SCRIPTS)
        letters = (chr(chance.randint(low, high)) for _ in range(chance.randint(1, 8)))
        words.append("".join(c for c in letters if unicodedata.category(c) != "Cn") + chance.choice(BLANKS))
    return "".join(words)


def main(program, folder, texts):
    chance = random.Random(23)
    lines = [line for text in texts for line in open(text, encoding="utf8").read().split("\n") if line]
    lines = chance.sample(lines, min(5000, len(lines)))
    while len(lines) < 10000:
        lines.append(made_line(chance))
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(line.encode() + b"\0" for line in lines))
        file.flush()
        ours = subprocess.run([program, folder, "", file.name], capture_output=True, check=True, text=True).stdout.split("\n")
        our_time = float(subprocess.run([program, folder, "time", file.name], capture_output=True, check=True, text=True).stdout)
    library = Tokenizer.from_file(folder + "/tokenizer.json")
    library.no_truncation()
    library.no_padding()
    different = sum([int(id) for id in row.split()] != library.encode(line).ids for row, line in zip(ours, lines))
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        for line in lines:
            library.encode(line)
        times.append(time.perf_counter() - begin)
    print(f"{folder}: {len(lines)} lines, {different} differ; qkv {our_time:.3f} s, tokenizers {min(times):.3f} s, line by line on one thread")
    return different > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
