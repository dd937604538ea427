#!/usr/bin/env python3
"""Rows of several distributions and what llama.cpp's quantiser makes of them: k.safetensors (or the file after --out). Takes
llama.cpp's libggml-base.so, which is built with it (build/bin): make_k_cases.py LIBGGML_BASE [--out FILE] [--rows N] [--iq4].
The committed files, of 8 rows of 512 a distribution, are of llama.cpp 0c1e570 (k) and of the one in llama-cpp-python 0.3.36 (iq4)."""
import argparse
import ctypes
import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
KINDS = [T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K]
IQ4 = [T.IQ4_NL, T.IQ4_XS]                                   # --iq4: these, into iq4.safetensors


def rows_of(rng, n, width):
    """Normal; with heavy tails; uniform; one element in 64 ten times as large; scales that differ between blocks; means not 0."""
    yield "normal", rng.normal(0, 0.02, (n, width))
    yield "laplace", rng.laplace(0, 0.02, (n, width))
    yield "student", rng.standard_t(3, (n, width)) * 0.02
    yield "uniform", rng.uniform(-1, 1, (n, width))
    far = rng.normal(0, 0.02, (n, width))
    far[rng.random((n, width)) < 1 / 64] *= 10
    yield "outliers", far
    yield "scaled", rng.normal(0, 1, (n, width)) * np.repeat(10.0 ** rng.uniform(-3, 0, (n, width // 32)), 32, axis=1)
    yield "shifted", rng.normal(0, 0.02, (n, width)) + np.repeat(rng.normal(0, 0.03, (n, width // 32)), 32, axis=1)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("library")
    a.add_argument("--out")
    a.add_argument("--rows", type=int, default=8)
    a.add_argument("--iq4", action="store_true")
    o = a.parse_args()
    kinds = IQ4 if o.iq4 else KINDS
    ggml = ctypes.CDLL(o.library)
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    rng, out = np.random.default_rng(20), {}
    for name, x in rows_of(rng, o.rows, 512):
        bits = x.astype(np.float32).view(np.uint32)
        bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)           # bf16: half the file
        x = np.ascontiguousarray((bits.astype(np.uint32) << 16).view(np.float32))
        out[f"{name}.input"] = bits
        for kind in kinds:
            per, size = GGML_QUANT_SIZES[kind]
            blocks = np.zeros(x.size // per * size, np.uint8)
            done = ggml.ggml_quantize_chunk(int(kind), x.ctypes.data, blocks.ctypes.data, 0, x.shape[0], x.shape[1], None)
            assert done == blocks.size
            out[f"{name}.{kind.name.lower()}"] = blocks
    save_file(out, o.out or HERE / ("iq4.safetensors" if o.iq4 else "k.safetensors"))


main()
