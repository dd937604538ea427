#!/usr/bin/env python3
"""Compares the tokenizer with the package `tokenizers` on random strings and random ids.

    python3 compare_random.py TOKENIZER_LINES [-n N] [--seed S] TOKENIZER.json...

TOKENIZER_LINES is the program of that name, built with the tests. Exit 1 if anything differs.
"""
import argparse
import json
import random
import subprocess
import sys
import unicodedata

import tokenizers

BLOCKS = [(0x20, 0x7E), (0x20, 0x7E), (0x61, 0x7A), (0x30, 0x39), (0x09, 0x0D), (0x80, 0xFF), (0x100, 0x24F), (0x250, 0x36F),
          (0x370, 0x3FF), (0x400, 0x52F), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF),
          (0x2000, 0x206F), (0x2070, 0x21FF), (0x2460, 0x24FF), (0x2E80, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
          (0xF900, 0xFAFF), (0xFB00, 0xFFFF), (0x10000, 0x1FFFF), (0x1F000, 0x1FAFF), (0x20000, 0x3FFFF), (0xE0000, 0xE01FF)]
PARTS = ["'s", "'S", "'ll", "'RE", "'", " ", "  ", "   ", "\n", "\r\n", "\t", "\n\n", "the", " the", "The", "word", "12", "1234",
         "\u0301", "\u0323", "\u200d", "\ufe0f", "👩‍👩‍👧", "🇩🇪", "河流", "かな", "नदी", "الجسر", "_", "--", "://", "==", "()", "{}\n",
         "\u00a0", "\u2028", "\u0085", "\u180e", "½", "²", "Ⅷ", "İ", "ς", "Σ", "ſ", "K", "é", "ﬁ", "각", "\0", "ß", "Ǆ"]


def random_text(rng, extra):
    kind = rng.random()
    if kind < 0.03:  # a long run
        return rng.choice(PARTS + extra) * rng.randrange(1, 300)
    text = []
    block = rng.choice(BLOCKS)
    for _ in range(rng.randrange(1, 40)):
        choice = rng.random()
        if choice < 0.25:
            block = rng.choice(BLOCKS)
        if choice < 0.45:
            text.append(rng.choice(PARTS))
        elif choice < 0.55 and extra:
            text.append(rng.choice(extra))
        else:
            for _ in range(rng.randrange(1, 6)):
                c = rng.randint(*block)
                if not 0xD800 <= c < 0xE000:
                    text.append(chr(c))
    return "".join(text)


def reference_of(path):
    """What the package makes of a file, without cutting or filling up its ids, which ours does not follow."""
    reference = tokenizers.Tokenizer.from_file(path)
    reference.no_truncation()
    reference.no_padding()
    return reference


def compare(program, path, n, seed, reference=None):
    """Of n random texts and n random lists of ids: how many differ, of how many."""
    rng = random.Random(f"{seed} {path}")
    reference = reference or reference_of(path)
    extra = [t.content for t in reference.get_added_tokens_decoder().values()]
    extra += [e[:-1] for e in extra if len(e) > 1] + [e.upper() for e in extra]
    texts = [random_text(rng, extra) for _ in range(n)]
    size = reference.get_vocab_size()
    ids = [[rng.randrange(size + 2) for _ in range(rng.randrange(12))] for _ in range(n)]
    lines = "\n".join(json.dumps(x) for x in texts + ids) + "\n"
    ran = subprocess.run([program, path], input=lines.encode(), capture_output=True)
    if ran.returncode != 0:
        print(f"{path}: {ran.stderr.decode()}")
        return n, n
    answers = [json.loads(x) for x in ran.stdout.decode().split("\n") if x]
    assert len(answers) == 2 * n
    byte_rows = "<0x" in json.dumps(list(reference.get_vocab())[:2000])  # streaming differs there, as documented
    wrong = []
    for text, answer in zip(texts, answers):
        want = {"ids": reference.encode(text, add_special_tokens=False).ids, "special": reference.encode(text).ids}
        want["decoded"] = reference.decode(want["special"], skip_special_tokens=False)
        want["streamed"] = want["decoded"]
        if any(answer.get(k) != v for k, v in want.items()):
            wrong.append((text, want, answer))
    for row, answer in zip(ids, answers[n:]):
        decoded = reference.decode(row, skip_special_tokens=False)
        if answer["decoded"] != decoded or (answer["streamed"] != decoded and not byte_rows):
            wrong.append((row, decoded, answer))
    for what, want, answer in wrong[:3]:
        names = ascii(what)
        if isinstance(what, str):
            names += " " + " ".join(sorted({unicodedata.name(c, f"U+{ord(c):04X}") for c in what if ord(c) > 0x7F})[:12])
        print(f"{path}:\n  {names}\n  want {want!a}\n  got  {answer!a}")
    return len(wrong), 2 * n


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("files", nargs="+")
    p.add_argument("-n", type=int, default=2000, help="texts, and as many lists of ids, for each file")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    wrong = count = 0
    for path in a.files:
        w, c = compare(a.program, path, a.n, a.seed)
        print(f"{path}: {c} compared, {w} differ")
        wrong, count = wrong + w, count + c
    print(f"{count} compared, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
