#!/usr/bin/env python3
"""What llama.cpp makes of difficult texts for each name of tokenizer.ggml.pre that runtime/tokenizer/gguf_patterns.cpp carries out.

    python3 make_gguf_cuts.py            write gguf_cuts.json here

One vocabulary for all: its merges were trained on whole lines, so that they reach across every place where a name may cut. The
texts are those of make_cases.py. Names that give the same ids for every text stand together.

Needs the packages gguf, tokenizers and llama-cpp-python (LLAMA_CPP_LIB_PATH names another build's libraries).
"""
import json
import re
import sys
import tempfile
import unicodedata
from pathlib import Path

import gguf
import llama_cpp
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from make_cases import TEXTS as ALL, TRAINING

# llama.cpp composes no characters, which some of these tokenizers do where they come from. U+0085 and U+180E are spaces to one of
# the two only.
TEXTS = [t for t in ALL if unicodedata.is_normalized("NFC", t) and "\u0085" not in t]
# Marks are parts of a word in the published patterns of words by case (the package `tokenizers` has them: cases/gpt4o), and not in
# llama.cpp's: such texts are left out for these (null).
WITH_MARKS = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2", "tekken"}


def has_marks(text):
    return any(unicodedata.category(c) in ("Mn", "Mc") and c != "\ufe0f" for c in text)


HERE = Path(__file__).resolve().parent
PATTERNS = HERE.parents[3] / "runtime/tokenizer/gguf_patterns.cpp"


def trained():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    lines = TRAINING + [part for text in TEXTS for part in (text, text[::-1])] * 3
    t.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=2400, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False, max_token_length=9))
    model = json.loads(t.to_str())["model"]
    return [token for token, _ in sorted(model["vocab"].items(), key=lambda p: p[1])], [" ".join(m) for m in model["merges"]]


def write(path, pre, tokens, merges):
    w = gguf.GGUFWriter(str(path), "llama")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre)
    w.add_token_list(tokens)
    w.add_token_types([1] * len(tokens))
    w.add_token_merges(merges)
    w.add_bos_token_id(0)
    w.add_eos_token_id(0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def main():
    names = sorted(set(re.findall(r'"([a-z0-9._-]+)"', re.search(r"entries\(\) \{(.*?)return all", PATTERNS.read_text(), re.S)[1])))
    tokens, merges = trained()
    groups = {}
    with tempfile.TemporaryDirectory() as folder:
        for pre in names:
            path = Path(folder) / f"{pre}.gguf"
            write(path, pre, tokens, merges)
            try:
                model = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
            except ValueError:
                print(f"{pre}: not known to this llama.cpp")
                continue
            ids = [None if pre in WITH_MARKS and has_marks(text) else
                   model.tokenize(text.encode(), add_bos=False, special=False) if text else [] for text in TEXTS]
            groups.setdefault(json.dumps(ids), []).append(pre)
    rows = ",\n".join(f'{{"names": {json.dumps(names)}, "ids": {ids}}}' for ids, names in sorted(groups.items(), key=lambda g: g[1]))
    (HERE / "gguf_cuts.json").write_text(
        f'{{"llama_cpp_python": "{llama_cpp.__version__}",\n"tokens": {json.dumps(tokens)},\n"merges": {json.dumps(merges)},\n'
        f'"texts": {json.dumps(TEXTS)},\n"cuts": [\n{rows}\n]}}\n', encoding="utf-8")
    print(f"{len(names)} names, {len(groups)} ways of cutting {len(TEXTS)} texts")


if __name__ == "__main__":
    sys.exit(main())
