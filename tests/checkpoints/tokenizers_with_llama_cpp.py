#!/usr/bin/env python3
"""Tokenizers that modelc writes into GGUF metadata, and llama.cpp's ids with them.

    python3 tokenizers_with_llama_cpp.py [--modelc PROGRAM] [--keep FOLDER] [--all] [TOKENIZER_JSON…]

Each tokenizer goes with random weights of a small llama into a GGUF (`modelc convert`). Of the texts of texts.py and of
tests/runtime/tokenizer/cases llama.cpp must make the ids that the package `tokenizers` makes of the file, without and with what
stands around a text; and so must the package of the tokenizer.json that `modelc convert` makes of the GGUF again. Those that modelc
refuses are listed with its reason. TOKENIZER_JSON…: others than those of the cases. --all: says each text that differs.

DIFFERS below holds, with the reason, the texts of which llama.cpp's ids are known to part from the published tokenizer's.

Needs the packages llama-cpp-python (LLAMA_CPP_LIB_PATH names another build's libraries), tokenizers and numpy. Exits 1 where ids differ.
"""
import argparse
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unicodedata

from llama_cpp import Llama
from texts import MORE, TEXTS
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests/runtime/tokenizer/cases"
NAMES = ["gpt2", "starcoder", "llama3", "qwen2", "gpt4o", "deepseek", "gemma_runs", "t5", "unigram_bytes", "bert"]
BYTES = re.compile("<0x[0-9A-F]{2}>")
SPACES = set(" \n\t\r\u00a0\u3000\u200b\u2028")                  # those that t5's table makes spaces
DIFFERS = [                                                   # name, whether a text is meant (by its text and its tokens), why
    ("qwen2", lambda text, tokens: unicodedata.normalize("NFC", text) != text, "it composes no characters"),
    ("gpt4o", lambda text, tokens: any(unicodedata.category(c)[0] == "M" for c in text), "it cuts before marks"),
    ("t5", lambda text, tokens: text[:1] == "▁" or any(c.isspace() and c not in SPACES for c in text) or "\u180e" in text,
     "it puts a space before each text, and ends words at spaces alone"),
    ("unigram_bytes", lambda text, tokens: text[:1] in (" ", "▁") or any(map(BYTES.fullmatch, tokens)),
     "it puts a space before each text, and takes the unknown token for what no piece covers"),
    ("bert", lambda text, tokens: any(unicodedata.category(c) in ("Mc", "Me", "Cc", "Cf", "Zl", "Zp") and c not in "\n\t\r"
                                      or "HANGUL" in unicodedata.name(c, "") for c in text),
     "it takes all marks for accents, other signs for control characters, and does not take Korean syllables apart"),
]


def prepared(name, spec):
    """What the format has no words for, taken out of a case's file; the file is otherwise as it is."""
    model = spec["model"]
    if name == "bert":                                        # the format has the usual 100, and no mark of a beginning within a word
        model["max_input_chars_per_word"] = 100
        model["vocab"] = {("##~~" if t == "##▁" else t): i for t, i in model["vocab"].items()}
    if name == "deepseek":                                    # a sign escaped that need not be
        for stage in spec["pre_tokenizer"]["pretokenizers"]:
            if "pattern" in stage:
                stage["pattern"]["Regex"] = stage["pattern"]["Regex"].replace('\\"', '"')
    if model["type"] == "Unigram":                            # its scores are of 32 bits, as sentencepiece's are
        model["vocab"] = [[t, struct.unpack("<f", struct.pack("<f", score))[0]] for t, score in model["vocab"]]
    if name == "unigram_bytes":
        spec["normalizer"] = None
        spec["pre_tokenizer"]["prepend_scheme"] = "always"
    return spec


def around(spec):
    """The tokens before and after a text, by their roles."""
    post = spec["post_processor"] or {}
    parts = post.get("processors", [post])
    out = {}
    for p in parts:
        if p.get("type") in ("BertProcessing", "RobertaProcessing"):
            out = {"cls_token": p["cls"][0], "sep_token": p["sep"][0]}
            if p["type"] == "RobertaProcessing":
                out.update(bos_token=p["cls"][0], eos_token=p["sep"][0])
        if p.get("type") == "TemplateProcessing":
            text = False
            for piece in p["single"]:
                if "Sequence" in piece:
                    text = True
                else:
                    out["eos_token" if text else "bos_token"] = piece["SpecialToken"]["id"]
    return out


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--modelc", default=str(ROOT / "build/codegen/driver/modelc"))
    a.add_argument("--keep")
    a.add_argument("--all", action="store_true")
    a.add_argument("files", nargs="*")
    o = a.parse_args()
    work = pathlib.Path(o.keep or tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)
    llama = ROOT / "examples/llama/llama.model"
    texts = [c["text"] for c in json.loads((CASES / "gpt2.cases.json").read_text())["cases"]] + TEXTS + MORE
    failed = 0

    def run(*args):
        return subprocess.run([o.modelc, *map(str, args)], cwd=ROOT, capture_output=True, text=True)

    sources = [(n, CASES / f"{n}.tokenizer.json") for n in NAMES] if not o.files else [(pathlib.Path(f).parent.name, pathlib.Path(f)) for f in o.files]
    for name, file in sources:
        spec = prepared(name, json.loads(file.read_text()))
        reference = Tokenizer.from_str(json.dumps(spec))
        reference.no_padding()
        reference.no_truncation()
        rows = max([i for i in reference.get_vocab(with_added_tokens=True).values()]) + 1
        rows += -rows % 32
        folder, gguf, back = work / f"{name}.folder", work / f"{name}.gguf", work / f"{name}.back"
        for p in (folder, back):
            shutil.rmtree(p, ignore_errors=True)
        gguf.unlink(missing_ok=True)
        made = run("convert", llama, "random", folder, "--config", ROOT / "examples/llama/fixtures/llama-tiny/config.json", "--set", f"vocab_size={rows}",
                   "--set", "num_hidden_layers=1")
        if made.returncode:
            sys.exit(made.stderr)
        (folder / "tokenizer.json").write_text(json.dumps(spec))
        special = around(spec)
        (folder / "tokenizer_config.json").write_text(json.dumps(special))
        config = json.loads((folder / "config.json").read_text())
        for role, key in (("bos_token", "bos_token_id"), ("eos_token", "eos_token_id"), ("sep_token", "eos_token_id")):
            config[key] = reference.token_to_id(special[role]) if role in special else config.get(key) if role == "sep_token" else None
        (folder / "config.json").write_text(json.dumps(config))
        made = run("convert", llama, folder, gguf)
        if made.returncode:
            print(f"refused  {name}: {made.stderr.strip()}")
            failed += not o.files
            continue
        lost = [line.removeprefix("note: not carried: ") for line in made.stderr.splitlines() if "tokenizer" in line]
        made = run("convert", llama, gguf, back)
        if made.returncode:
            failed += 1
            print(f"FAILED   {name}: not converted back\n{made.stderr}")
            continue
        again = Tokenizer.from_file(str(back / "tokenizer.json"))
        peer = Llama(str(gguf), vocab_only=True, verbose=False)
        differ, known = [], 0
        for text in texts:
            plain = reference.encode(text, add_special_tokens=False)
            ids = plain.ids
            with_special = reference.encode(text).ids
            found = [("llama.cpp", peer.tokenize(text.encode(), add_bos=False, special=True), ids),
                     ("llama.cpp with its ends", peer.tokenize(text.encode(), add_bos=True, special=True), with_special),
                     ("tokenizers of what came back", again.encode(text, add_special_tokens=False).ids, ids),
                     ("the same with its ends", again.encode(text).ids, with_special)]
            for who, theirs, ours in found:
                if list(theirs) == list(ours):
                    continue
                if who.startswith("llama.cpp") and any(n == name and meant(text, plain.tokens) for n, meant, _ in DIFFERS):
                    known += 1
                else:
                    differ.append((who, text, theirs, ours))
        peer.close()
        failed += bool(differ)
        print(f"{'FAILED ' if differ else 'ok     '}  {name}: {len(texts)} texts, {len(differ)} of {4 * len(texts)} comparisons differ, {known} as known"
              + "".join(f"\n         not carried: {line}" for line in lost))
        for who, text, theirs, ours in differ if o.all else differ[:3]:
            print(f"         {who}, {text!r}: {theirs}, and tokenizers' {ours}")
    print(f"{failed} failed")
    sys.exit(1 if failed else 0)


main()
