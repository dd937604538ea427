#!/usr/bin/env python3
"""GGUF files that modelc writes, opened and computed by llama.cpp.

    python3 with_llama_cpp.py [--modelc PROGRAM] [--keep FOLDER]

Each fixture goes through `modelc convert` into f32 and q8_0; llama.cpp computes the logits of its prompt, and `modelc verify` compares
its own with them. Where the fixture has a tokenizer, token ids are compared, too.

Of f32 weights the bound is absolute, 1e-4: llama.cpp is told to keep keys and values in f32, and sums in another order; 5e-3 with
gelu, which it takes from a table of 16-bit numbers. Of q8_0 it rounds activations to 8 bits before each product, which modelc's exact
mode does not: there the divergence of the probabilities is bounded, as for mode fast. Exits 1 where one differs.

Largest difference from transformers' logits of the same fixtures with the llama.cpp of llama-cpp-python 0.3.36: llama 2.2e-6, the
trained one 1.7e-5, qwen2 2.6e-6, qwen3 3.0e-6, gemma3 2.9e-3.

Needs the package llama-cpp-python (LLAMA_CPP_LIB_PATH names another build's libraries; numpy comes with it), and tokenizers.
"""
import argparse
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np
from llama_cpp import Llama

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXACT, GELU = 1e-4, 5e-3
ROUNDED = ("--within-mean-kl", "5e-3", "--within-kl-99", "3e-2")
GGML_F32 = 0
TEXTS = ["Once upon a time, there was a little dog.", "It's 12:30 - don't\n\n  be late!", "naïve café 你好 😀"]
CASES = [                                                     # name, model, checkpoint, what the configuration must say for GGUF
    ("llama", "llama", "examples/llama/fixtures/llama-tiny", {}),
    ("llama tied", "llama", "examples/llama/fixtures/llama-tied", {}),
    ("llama bf16", "llama", "examples/llama/fixtures/llama-bf16", {}),
    ("llama with biases", "llama", "examples/llama/fixtures/llama-bias", {}),
    ("llama linear scaling", "llama", "examples/llama/fixtures/llama-rope-linear", {}),
    ("llama3 scaling", "llama", "examples/llama/fixtures/llama-rope-llama3", {}),
    ("trained, with a tokenizer", "llama", "examples/tiny", {}),
    ("qwen2", "qwen2", "examples/qwen2/fixtures/qwen2-tiny", {}),
    ("qwen3", "qwen3", "examples/qwen3/fixtures/qwen3-tiny", {}),
    # The format has no key for this one: 1 / sqrt of the head's size.
    ("gemma3", "gemma3_text", "examples/gemma3_text/fixtures/gemma3-tiny", {"query_pre_attn_scalar": "head_dim"}),
]


def read_ids(folder):
    data = (folder / "expected.safetensors").read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    t = json.loads(data[8:8 + n])["input_ids"]
    begin, end = t["data_offsets"]
    dtype = {"I32": np.int32, "I64": np.int64}[t["dtype"]]
    return np.frombuffer(data[8 + n + begin:8 + n + end], dtype).reshape(-1, t["shape"][-1])[0].astype(np.int32)


def write_expected(path, ids, logits):
    parts = {"input_ids": ("I32", [1, len(ids)], ids.astype("<i4").tobytes()),
             "logits": ("F32", [1, *logits.shape], np.ascontiguousarray(logits, "<f4").tobytes())}
    header, at = {}, 0
    for name, (dtype, shape, data) in parts.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(p[2] for p in parts.values()))


def peer(gguf, ids):
    """llama.cpp's logits of the prompt, and its ids of the texts."""
    model = Llama(str(gguf), n_ctx=max(64, len(ids)), logits_all=True, n_gpu_layers=0, type_k=GGML_F32, type_v=GGML_F32, verbose=False)
    model.eval([int(i) for i in ids])
    logits = np.array(model.scores[:len(ids)], np.float32)
    tokens = [model.tokenize(t.encode(), add_bos=False, special=False) for t in TEXTS] if model.n_vocab() > 64 else []
    model.close()
    return logits, tokens


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--modelc", default=str(ROOT / "build/codegen/driver/modelc"))
    a.add_argument("--keep")
    o = a.parse_args()
    work = pathlib.Path(o.keep or tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)
    failed = 0

    def run(*args):
        return subprocess.run([o.modelc, *map(str, args)], cwd=ROOT, capture_output=True, text=True)

    for name, model, source, changes in CASES:
        folder, text = ROOT / source, f"examples/{model}/{model}.model"
        slug = name.replace(" ", "-").replace(",", "")
        if changes:
            folder = work / f"{slug}.folder"
            shutil.copytree(ROOT / source, folder, dirs_exist_ok=True)
            config = json.loads((folder / "config.json").read_text())
            config.update({key: config[value] for key, value in changes.items()})
            (folder / "config.json").write_text(json.dumps(config))
        ids = read_ids(ROOT / source)
        exact = GELU if model == "gemma3_text" else EXACT
        for encoding in ("f32", "q8_0"):
            gguf = work / f"{slug}.{encoding}.gguf"
            gguf.unlink(missing_ok=True)
            made = run("convert", text, folder, gguf, "--quantize", encoding)
            if made.returncode != 0:
                failed += 1
                print(f"FAILED  {name}, {encoding}: not converted\n{made.stderr}")
                continue
            logits, tokens = peer(gguf, ids)
            expected = work / f"{slug}.{encoding}.safetensors"
            write_expected(expected, ids, logits)
            limits = ("--within", exact) if encoding == "f32" else ("--within", "1000", *ROUNDED)
            done = run("verify", text, "--checkpoint", gguf, "--expected", expected, "--json", *limits)
            ok = done.returncode == 0
            failed += not ok
            if done.stdout.startswith("{"):
                d = json.loads(done.stdout)["tensors"][0]
                said = f"differs by at most {d['max_abs']:.2e}, mean divergence {d['mean_kl']:.2e}, of 99 % {d['kl_99']:.2e}"
            else:
                said = done.stdout + done.stderr
            print(f"{'ok    ' if ok else 'FAILED'}  {name}, {encoding}: {said}")
            for t, theirs in zip(TEXTS, tokens):
                from tokenizers import Tokenizer                     # what the folder's own file says
                ours = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(t, add_special_tokens=False).ids
                if list(theirs) != list(ours):
                    failed += 1
                    print(f"FAILED  {name}: llama.cpp's ids of {t!r}: {theirs}, and tokenizers': {ours}")
    print(f"{failed} failed")
    sys.exit(1 if failed else 0)


main()
