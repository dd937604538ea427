#!/usr/bin/env python3
"""Greedy text beside llama.cpp's: the same file, the same prompts, 64 tokens each (README.md).

    python3 beside_llama_cpp.py GGUF MODELC FILE.model [--mode exact] [--cache f32] [--need 19] [--tokens 64] [--prompts prompts.txt]
    python3 beside_llama_cpp.py GGUF --itself            llama.cpp without and with flash attention: how far its own texts agree

A prompt's ids are llama.cpp's, and must be ours too. Where the texts part, the difference has to be one of rounding: at that
position llama.cpp's two candidates lie closer together than twice the largest difference between its logits and ours over the same
tokens (`modelc verify`). Exits 1 when fewer than --need prompts give the same tokens, or a difference is larger than that.

Needs the packages llama-cpp-python (which builds llama.cpp; LLAMA_CPP_LIB_PATH names another build's libraries), numpy, safetensors.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import safetensors.numpy


class Peer:
    """llama.cpp with one sequence: logits f32 [tokens, vocab] of ids."""

    def __init__(self, path, cache="f16", flash=False, context=1024, threads=2):
        import llama_cpp
        kind = {"f16": llama_cpp.GGML_TYPE_F16, "f32": llama_cpp.GGML_TYPE_F32}[cache]
        self.model = llama_cpp.Llama(str(path), n_ctx=context, n_threads=threads, n_threads_batch=threads, logits_all=True,
                                     type_k=kind, type_v=kind, flash_attn=flash, verbose=False)

    def ids(self, text):
        return self.model.tokenize(text.encode(), add_bos=True, special=True)

    def logits(self, ids):
        self.model.reset()
        self.model.eval(ids)
        return np.array(self.model.scores[:len(ids)], dtype=np.float32)

    def greedy(self, ids, count):
        """`count` ids, or fewer where a text ends."""
        self.model.reset()
        self.model.eval(ids)
        result = []
        while len(result) < count:
            best = int(np.argmax(self.model.scores[self.model.n_tokens - 1]))
            if best == self.model.token_eos():
                break
            result.append(best)
            self.model.eval([best])
        return result


def ours(args, ids, count):
    run = [args.modelc, "run", args.model, "--checkpoint", args.gguf, "--mode", args.mode, "-n", str(count), "--json",
           "--tokens", ",".join(map(str, ids))]
    out = subprocess.run(run, capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(f"{' '.join(run)}\n{out.stderr}")
    return json.loads(out.stdout)["tokens"]


def our_ids(args, text):
    run = [args.modelc, "run", args.model, "--checkpoint", args.gguf, "--mode", args.mode, "-n", "0", "--json", "--prompt", text]
    out = subprocess.run(run, capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(f"{' '.join(run)}\n{out.stderr}")
    return json.loads(out.stdout)["prompt_tokens"]


def largest_difference(args, ids, logits):
    """Of llama.cpp's logits of `ids` and ours."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "expected.safetensors"
        safetensors.numpy.save_file({"input_ids": np.array([ids], dtype=np.int64), "logits": logits[None]}, path)
        run = [args.modelc, "verify", args.model, "--checkpoint", args.gguf, "--mode", args.mode, "--expected", str(path),
               "--within", "1000", "--json"]
        out = subprocess.run(run, capture_output=True, text=True)
    if not out.stdout.startswith("{"):
        sys.exit(f"{' '.join(run)}\n{out.stdout}{out.stderr}")
    return max(t["max_abs"] for t in json.loads(out.stdout)["tensors"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("modelc", nargs="?")
    parser.add_argument("model", nargs="?")
    parser.add_argument("--itself", action="store_true")
    parser.add_argument("--mode", default="exact", choices=["exact", "fast"])
    parser.add_argument("--cache", default="f32", choices=["f16", "f32"], help="llama.cpp's; ours is f32 in exact, f16 in fast")
    parser.add_argument("--need", type=int, default=19)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--prompts", default=Path(__file__).with_name("prompts.txt"))
    args = parser.parse_args()
    if args.itself == (args.model is not None):
        parser.error("GGUF MODELC FILE.model, or GGUF --itself")

    import llama_cpp
    print(f"llama-cpp-python {llama_cpp.__version__}: {llama_cpp.llama_print_system_info().decode()}")
    prompts = Path(args.prompts).read_text(encoding="utf-8").splitlines()
    if args.itself:
        texts = []
        for flash in (False, True):
            peer = Peer(args.gguf, "f16", flash)
            texts.append([peer.greedy(peer.ids(p), args.tokens) for p in prompts])
        same = sum(a == b for a, b in zip(*texts))
        print(f"llama.cpp without and with flash attention: {same} of {len(prompts)} the same over {args.tokens} tokens")
        return
    peer = Peer(args.gguf, args.cache)
    same, wrong = 0, 0
    for prompt in prompts:
        ids = peer.ids(prompt)
        if our_ids(args, prompt) != len(ids):
            print(f"DIFFERENT IDS    {prompt!r}")
            wrong += 1
            continue
        theirs, mine = peer.greedy(ids, args.tokens), ours(args, ids, args.tokens)
        if theirs == mine:
            print(f"the same {len(mine):3}     {prompt!r}")
            same += 1
            continue
        at = next((i for i, (a, b) in enumerate(zip(theirs, mine)) if a != b), min(len(theirs), len(mine)))
        end = peer.model.token_eos()
        a, b = (theirs + [end])[at], (mine + [end])[at]
        shared = ids + theirs[:at]
        logits = peer.logits(shared)
        margin = float(logits[-1][a] - logits[-1][b])
        rounding = largest_difference(args, shared, logits)
        explained = margin <= 2 * rounding
        wrong += not explained
        print(f"parts after {at:3}  {prompt!r}: {a} before {b} by {margin:.4f}; logits differ by at most {rounding:.4f}"
              f"{'' if explained else ': NOT EXPLAINED'}")
    print(f"{same} of {len(prompts)} the same over {args.tokens} tokens; {wrong} wrong")
    sys.exit(0 if same >= args.need and wrong == 0 else 1)


if __name__ == "__main__":
    main()
