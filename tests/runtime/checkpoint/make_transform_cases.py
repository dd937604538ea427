#!/usr/bin/env python3
"""Writes transform_cases.json: what each transform does to small tensors, by PyTorch. --check compares with the file."""
import json
import pathlib
import sys

import torch

torch.manual_seed(7)
HERE = pathlib.Path(__file__).parent


def numbers(*shape):
    return torch.randint(-9999, 9999, shape, dtype=torch.int32)


def entry(t):
    return {"shape": list(t.shape), "values": t.flatten().tolist()}


def rope_to_file(x, heads, rows=None):
    """As transformers' convert_llama_weights_to_hf permutes, the other way round, on the first rows of each head."""
    head = x.shape[0] // heads
    rows = rows or head
    x = x.view(heads, head, *x.shape[1:])
    turned = x[:, :rows].reshape(heads, 2, rows // 2, *x.shape[2:]).transpose(1, 2).reshape(heads, rows, *x.shape[2:])
    return torch.cat([turned, x[:, rows:]], 1).reshape(heads * head, *x.shape[2:])


def cases():
    a = numbers(3, 4, 5)
    yield "transpose(1, 2)", [a.transpose(1, 2)], [a]
    yield "transpose(0, -1)", [a.transpose(0, 2)], [a]
    yield "reshape([15, 4])", [a.reshape(15, 4)], [a]
    yield "stack(e)", list(a.unbind(0)), [a]
    g, u = numbers(3, 2, 5), numbers(3, 6, 5)
    yield "split(1)", [torch.cat([g, u], 1)], [g, u]
    yield "split(-2)", [torch.cat([g, u], 1)], [g, u]
    q, k, v = numbers(6, 4), numbers(2, 4), numbers(2, 4)
    yield "split(0)", [torch.cat([q, k, v], 0)], [q, k, v]
    yield "concat(1, [1, 3])", list(a.split([1, 3], 1)), [a]
    p, r = numbers(3, 4, 2), numbers(3, 4, 2)
    yield "unzip(1)", [torch.stack([p, r], 2).reshape(3, 8, 2)], [p, r]
    yield "unzip(2)", [torch.stack([p, r], 3).reshape(3, 4, 4)], [p, r]
    yield "transpose(1, 2), unzip(1)", [torch.stack([p, r], 2).reshape(3, 8, 2).transpose(1, 2)], [p, r]
    w = numbers(12, 3)
    yield "deinterleave_rope_rows(2)", [rope_to_file(w, 2)], [w]
    yield "deinterleave_rope_rows(3, 2)", [rope_to_file(w, 3, 2)], [w]
    bias = numbers(8)
    yield "deinterleave_rope_rows(2)", [rope_to_file(bias, 2)], [bias]
    yield "transpose(0, 1), stack(i)", [x.t() for x in a.unbind(0)], [a]
    yield "split(0), deinterleave_rope_rows(1)", [torch.cat([rope_to_file(q, 1), rope_to_file(k, 1)], 0)], [q, k]


def main():
    text = json.dumps([{"via": via, "file": [entry(t) for t in file], "model": [entry(t) for t in model]}
                       for via, file, model in cases()], separators=(",", ":")) + "\n"
    path = HERE / "transform_cases.json"
    if "--check" in sys.argv:
        if path.read_text() != text:
            sys.exit(f"{path} differs")
        return
    path.write_text(text)


main()
