#!/usr/bin/env python3
"""Writes the inputs from which the target tokenizer starts: every tokenizer.json of tests/runtime/tokenizer/cases with the texts of its
cases, the smallest of them with each pattern to cut words by, and, of each stage that the tests have, copies that lack a member or
have another in its place. tokenizer_seeds.py OUT"""
import copy
import json
import pathlib
import sys

CASES = pathlib.Path(__file__).parents[1] / "runtime/tokenizer/cases"
OUT = pathlib.Path(sys.argv[1])
LONGEST = 30_000                                             # as runtime.sh has it
STAGES = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
# Patterns that are refused, or that few files have: places in the translation which valid files do not come to.
PATTERNS = [r"a\Kb", r"(a)\1", r"(?x) a", r"(?~ab)", r"a(?i)b", r"a**", r"a{2}{3}", r"\p{Klingon}", r"\pL", r"[[:graph:]]", r"\xff", r"\X",
            r"(?i)[\p{Lu}a]", r"(?i:[a[^b]])", r"(?i:a)[\p{Lu}a](?i:b(?-i:[[^c]]))", r"[\d-x]", r"(a", r"a)", r"[a", r"*a", r"a|*", "a\\",
            r"[z-a]", r"\x{110000}", r"\u12", r"(?#", r"(?#x)a", r"(?<=a+)b", r"(?<=a)b(?<!c)d", r"(?=a)(?!b)", r"(?>a+)b", r"(?<n>a)",
            r"a{,3}b{2,}c{1}", r"a?+b*?c++", r"[^\s\p{L}&&[^a-c]]", r"[[:alpha:][:^digit:]]", r"\x{61}\x62\u0063\t\n\r\f\v\a\e",
            r"^a$|\Ab\z|\Z|\G", r"\bx\B", r"\h\H\R\O\N", r"\p{^L}\P{Lu}\p{Han}", r"(?i:k|ſ|ß)", r"\141\0"]


def write(name, file, text=None):
    data = json.dumps(file, ensure_ascii=False) if not isinstance(file, str) else file
    if text is not None:
        data += "\n%%%\n" + text
    if len(data.encode()) <= LONGEST:
        OUT.joinpath(name + ".seed").write_text(data)


def members(value, path=()):
    """Every place below a stage, the vocabulary's entries aside."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, child in items:
        yield path + (key,)
        if key not in ("vocab", "merges"):
            yield from members(child, path + (key,))


def changed(file, path, how):
    file = copy.deepcopy(file)
    at = file
    for key in path[:-1]:
        at = at[key]
    if how == "gone":
        del at[path[-1]]
    else:
        at[path[-1]] = how
    return file


seen = set()
for path in sorted(CASES.glob("*.tokenizer.json")):
    stem = path.name.removesuffix(".tokenizer.json")
    file = json.loads(path.read_text())
    texts = [row["text"] for row in json.loads((CASES / f"{stem}.cases.json").read_text())["cases"]]
    whole = "\n".join(t for t in texts if len(t) < 400)
    write(stem, file, whole)
    # A stage is taken with few tokens, so that a copy of it is small; each kind of stage once.
    few = copy.deepcopy(file)
    vocab = few["model"]["vocab"]
    few["model"]["vocab"] = dict(list(vocab.items())[:40]) if isinstance(vocab, dict) else vocab[:40]
    if "merges" in few["model"]:
        few["model"]["merges"] = few["model"]["merges"][:1]
    few["added_tokens"] = few["added_tokens"][:2]
    for place in members({s: few[s] for s in STAGES + ("added_tokens",) if few.get(s)}):
        holder = few
        for key in place[:-1]:
            holder = holder[key]
        what = (str(holder.get("type")) if isinstance(holder, dict) else "list", place[-1], place[0])
        if what in seen:
            continue
        seen.add(what)
        for i, how in enumerate(("gone", 7, "x", "", [], {}, True, -1)):
            write(f"{stem}-{len(seen)}-{i}", changed(few, place, how))

small = json.loads((CASES / "word_level.tokenizer.json").read_text())
patterns = json.loads((CASES / "patterns.json").read_text())
for i, pattern in enumerate([row["pattern"] for row in patterns["patterns"]] + PATTERNS):
    small["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    write(f"pattern-{i}", small, patterns["text"])
