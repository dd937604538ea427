#!/usr/bin/env python3
"""Writes expected.safetensors: what transformers computes from this folder in float32, for a prompt of 32 tokens.

    python3 make_expected.py           write expected.safetensors and expected_text.json
    python3 make_expected.py --check   compute, compare with what is here; exit 1 if it differs

Needs torch, transformers, safetensors, tokenizers, numpy. The bfloat16 weights are widened to float32; attention is the
eager one. Tensors: input_ids I32 [1, 32], logits F32 [1, 32, vocab], and stages named by module path. expected_text.json
holds the greedy continuation of the prompt, and the smallest distance between the two best logits on the way.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "llama" / "fixtures"))

import safetensors.torch
import tokenizers
import torch

import reference as r

TEXT = ("Emma was not at all sorry to be so soon relieved; and though she had little hope of seeing him again that "
        "evening, she could not but think of it with some pleasure, and wish that her father were well enough")
LENGTH, MORE = 32, 48


def make(folder):
    tokenizer = tokenizers.Tokenizer.from_file(str(HERE / "tokenizer.json"))
    ids = tokenizer.encode(TEXT).ids[:LENGTH]
    assert len(ids) == LENGTH
    model = r.load("llama", HERE)
    out = r.run(model, torch.tensor([ids], dtype=torch.int32))
    (folder / "expected.safetensors").write_bytes(safetensors.torch.save(out))
    at, margin = list(ids), float("inf")
    for _ in range(MORE):
        best = r.logits(model, torch.tensor([at]))[0, -1].topk(2)
        margin = min(margin, float(best.values[0] - best.values[1]))
        at.append(int(best.indices[0]))
    text = {"prompt": tokenizer.decode(ids), "input_ids": ids, "greedy_ids": at[LENGTH:],
            "greedy_text": tokenizer.decode(at[LENGTH:], skip_special_tokens=False),
            "smallest_margin": round(margin, 4), "versions": r.versions()}
    (folder / "expected_text.json").write_text(json.dumps(text, indent=1) + "\n")
    return text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true")
    if not p.parse_args().check:
        print(json.dumps({k: v for k, v in make(HERE).items() if not k.endswith("ids")}, indent=1))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        made = make(Path(temporary))
        a = safetensors.torch.load_file(Path(temporary) / "expected.safetensors")
        b = safetensors.torch.load_file(HERE / "expected.safetensors")
    kept = json.loads((HERE / "expected_text.json").read_text())
    wrong = [k for k in sorted(set(a) | set(b)) if k not in a or k not in b or a[k].shape != b[k].shape
             or not float(((a[k].double() - b[k].double()).abs() / b[k].double().abs().clamp(min=1)).max()) <= r.SAME]
    wrong += [k for k in ("input_ids", "greedy_ids", "greedy_text") if made[k] != kept[k]]
    print("\n".join(f"{w} differs" for w in wrong) or "the same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
