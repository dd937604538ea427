#!/usr/bin/env python3
"""Writes GGUF files without tensors that hold the tokenizers of tests/runtime/tokenizer/cases, one of each kind, cut down to a
few tokens: the valid inputs from which the target gguf_tokenizer starts. gguf_tokenizer_seeds.py OUT"""
import base64
import json
import pathlib
import struct
import sys

CASES = pathlib.Path(__file__).parents[1] / "runtime/tokenizer/cases"
OUT = pathlib.Path(sys.argv[1])
U32, I32, F32, BOOL, STRING, ARRAY, U8 = 4, 5, 6, 7, 8, 9, 0
PACK = {U8: "<B", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B"}


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def entry(key, kind, value):
    head = text("tokenizer.ggml." + key)
    if isinstance(value, list):
        body = b"".join(text(v) if kind == STRING else struct.pack(PACK[kind], v) for v in value)
        return head + struct.pack("<IIQ", ARRAY, kind, len(value)) + body
    return head + struct.pack("<I", kind) + (text(value) if kind == STRING else struct.pack(PACK[kind], value))


def write(name, entries):
    OUT.joinpath(name + ".gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries))


def read(stem, tokens):
    """The first tokens of a case with those that mean something, their types, scores and merges."""
    file = json.loads((CASES / f"{stem}.tokenizer.json").read_text())
    model = file["model"]
    vocab = model["vocab"]
    pairs = [(t, 0.0) for t in vocab] if isinstance(vocab, dict) else [(t, s) for t, s in vocab]
    kept = pairs[:tokens]
    types = [1] * len(kept)
    for added in file["added_tokens"]:
        names = [t for t, _ in kept]
        if added["content"] in names:
            types[names.index(added["content"])] = 3
        else:
            kept.append((added["content"], 0.0))
            types.append(3 if added["special"] else 4)
    names = [t for t, _ in kept]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model.get("merges", [])]
    return file, names, types, [s for _, s in kept], [m for m in merges if m.replace(" ", "") in names]


for stem, pre in (("gpt2", "gpt-2"), ("starcoder", "smollm"), ("qwen2", "qwen2"), ("gpt4o", "gpt-4o"), ("deepseek", "deepseek-v3"),
                  ("llama3", "llama-bpe"), ("gpt2", "dbrx"), ("gpt2", "stablelm2"), ("gpt2", "tekken"), ("gpt2", "other")):
    _, names, types, _, merges = read(stem, 300)
    write(f"{stem}-{pre}", [entry("model", STRING, "gpt2"), entry("pre", STRING, pre), entry("tokens", STRING, names),
                            entry("token_type", I32, types), entry("merges", STRING, merges), entry("bos_token_id", U32, len(names) - 1),
                            entry("add_bos_token", BOOL, 1)])
scored = json.loads((CASES / "scored.json").read_text())
for prefix in (0, 1):
    write(f"llama-{prefix}", [entry("model", STRING, "llama"), entry("tokens", STRING, scored["tokens"][:300]),
                              entry("token_type", I32, scored["types"][:300]), entry("scores", F32, scored["scores"][:300]),
                              entry("unknown_token_id", U32, 0), entry("bos_token_id", U32, 1), entry("eos_token_id", U32, 2),
                              entry("add_space_prefix", BOOL, prefix), entry("add_eos_token", BOOL, 1)])
for stem in ("t5", "unigram_bytes"):
    file, names, types, scores, _ = read(stem, 300)
    table = (file["normalizer"] or {}).get("precompiled_charsmap")
    write(stem, [entry("model", STRING, "t5"), entry("tokens", STRING, names), entry("token_type", I32, types), entry("scores", F32, scores),
                 entry("unknown_token_id", U32, 2), entry("eos_token_id", U32, 1), entry("remove_extra_whitespaces", BOOL, 0)] +
          ([entry("precompiled_charsmap", U8, list(base64.b64decode(table)))] if table else []))
_, names, types, _, _ = read("bert", 200)
marked = [t if kind != 1 else t[2:] if t.startswith("##") else "▁" + t for t, kind in zip(names, types)]
write("bert", [entry("model", STRING, "bert"), entry("tokens", STRING, marked), entry("token_type", I32, types),
               entry("unknown_token_id", U32, names.index("[UNK]")), entry("cls_token_id", U32, names.index("[CLS]")),
               entry("seperator_token_id", U32, names.index("[SEP]"))])
