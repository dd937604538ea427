#!/usr/bin/env python3
"""Lines per architecture: what its config and modules take, without comments, empty lines, checkpoint blocks, sections and tests.

Usage: python3 examples/lines.py [FILE.model ...]     (all of examples/ and stdlib/ without arguments)
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|[A-Za-z_][A-Za-z0-9_]*|\S|\n')
# What does not say what a model computes: how a checkpoint is read, where it runs, how it is tested.
LEFT_OUT = {"checkpoint", "policy", "quantize", "shard", "place"}


def lines_of(text):
    """{'config': n, 'modules': n, 'other': n} of a model file."""
    words, line = [], 1
    for match in WORD.finditer(text):
        word = match.group()
        if word == "\n":
            line += 1
        elif not word.startswith("//"):
            words.append((word, line))
    kinds = {"config": "config", "variant": "config", "module": "modules", "model": "modules", "fn": "modules", "op": "modules"}
    counted = {"config": set(), "modules": set(), "other": set()}
    depth, kind, skipped_from = 0, "other", None
    for i, (word, line) in enumerate(words):
        after = words[i + 1][0] if i + 1 < len(words) else ""
        if depth == 0:
            if word == "test" and after.startswith('"'):
                kind = None
            elif word in {"encoding", "interface", "axis", "import", "language"}:
                kind = "other"
            elif word in kinds and re.match(r"[A-Za-z_]", after):
                kind = kinds[word]
        elif depth == 1 and skipped_from is None and kind == "modules":
            begins = word in LEFT_OUT and (after == "{" or word == "checkpoint" and re.match(r"[A-Za-z_]", after))
            if begins:
                skipped_from = depth
        if kind is not None and skipped_from is None:
            counted[kind].add(line)
        if word == "{":
            depth += 1
        elif word == "}":
            depth -= 1
            if skipped_from == depth:
                skipped_from = None
    return {name: len(lines) for name, lines in counted.items()}


def main():
    files = [pathlib.Path(f) for f in sys.argv[1:]]
    if not files:
        files = sorted(ROOT.glob("examples/*/*.model")) + sorted(ROOT.glob("stdlib/nn/*.model"))
    print("| file | config | modules | together |\n|---|---|---|---|")
    for file in files:
        n = lines_of(file.read_text())
        name = file.resolve().relative_to(ROOT) if file.resolve().is_relative_to(ROOT) else file
        print(f"| `{name}` | {n['config']} | {n['modules']} | {n['config'] + n['modules']} |")


if __name__ == "__main__":
    main()
