#!/usr/bin/env python3
"""Blocks of every encoding with their values, by the PyPI packages gguf (0.19), torch (8-bit floats) and numpy; writes
decode.safetensors and encode.safetensors. `--check` compares with the committed files instead. `--grids` prints the numbers of
runtime/encoding/grids.cpp."""
import pathlib
import sys

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf import quants
from safetensors.numpy import load_file, save_file

HERE = pathlib.Path(__file__).parent
np.seterr(all="ignore")

# Bytes of the f16 scales of each type's block, for blocks whose scale is zero, subnormal, infinite and not a number.
HALVES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2],
          T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ1_S: [0], T.IQ1_M: None, T.IQ2_XXS: [0], T.IQ2_XS: [0], T.IQ2_S: [0], T.IQ3_XXS: [0],
          T.IQ3_S: [0], T.IQ4_NL: [0], T.IQ4_XS: [0], T.TQ1_0: [52], T.TQ2_0: [64], T.MXFP4: None, T.NVFP4: None, T.BF16: [], T.F16: []}
EDGES = [0x0000, 0x8000, 0x0001, 0x03FF, 0x8200, 0x7BFF, 0x7C00, 0xFC00, 0x7E00]


def splitmix(seed, n):
    """n bytes of the generator of tests/runtime/encoding/decode_test.cpp."""
    k = np.arange(1, (n + 7) // 8 + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    k = (k ^ (k >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    k = (k ^ (k >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (k ^ (k >> np.uint64(31))).view(np.uint8)[:n].copy()


def digest(values):
    """One number for many values, order and all bits of which count, but for those of what is not a number."""
    bits = values.astype(np.float32).ravel().view(np.uint32).astype(np.uint64)
    bits[np.isnan(values.ravel())] = 0x7FC00000
    weight = (2 * np.arange(len(bits), dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return int((bits * weight).sum(dtype=np.uint64))


def decode(kind, blocks):
    return quants.dequantize(blocks, kind).astype(np.float32)


def edge_blocks(kind, size):
    out = []
    for i, bits in enumerate(EDGES):
        b = splitmix(1000 + i, size)
        for at in HALVES[kind] or []:
            b[at:at + 2] = np.frombuffer(np.uint16(bits).tobytes(), np.uint8)
        if kind == T.IQ1_M:
            for part in range(4):
                b[49 + 2 * part] = (b[49 + 2 * part] & 15) | ((bits >> 4 * part & 15) << 4)
        if kind == T.MXFP4:
            b[0] = [0, 1, 2, 3, 126, 127, 128, 254, 255][i]
        if kind == T.NVFP4:
            b[0:4] = [[0, 1, 7, 8], [0x7E, 0x7F, 0x80, 0x81], [0xFE, 0xFF, 0x38, 0x08]][i % 3]
        out.append(b)
    out += [np.zeros(size, np.uint8), np.full(size, 255, np.uint8)]
    return out


def decode_cases():
    cases = {}
    for kind in HALVES:
        size = GGML_QUANT_SIZES[kind][1]
        name = kind.name.lower()
        blocks = np.stack(edge_blocks(kind, size) + [splitmix(i, size) for i in range(3)])
        cases[name + ".blocks"] = blocks
        cases[name + ".digests"] = np.array([digest(decode(kind, b[None])) for b in blocks], np.uint64)
        # The last block in full, so that a difference can be looked at.
        cases[name + ".values"] = decode(kind, blocks[-1:]).ravel()
        cases[name + ".digest_of_2000"] = np.array([digest(decode(kind, splitmix(7, 2000 * size).reshape(2000, size)))], np.uint64)
    for name, dtype in [("f8_e4m3", torch.float8_e4m3fn), ("f8_e5m2", torch.float8_e5m2), ("f8_e8m0", torch.float8_e8m0fnu)]:
        cases[name + ".all"] = torch.arange(256, dtype=torch.uint8).view(dtype).to(torch.float32).numpy()
    return cases


ENCODERS = [T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.TQ1_0, T.TQ2_0, T.MXFP4, T.BF16, T.F16]


def inputs():
    """Rows of 256: normal, of large and tiny scale, with outliers, all equal, ties, zeros, signed zeros, subnormal."""
    r = np.random.default_rng(5)
    n = 256
    rows = [r.standard_normal(n) for _ in range(8)]
    rows += [r.standard_normal(n) * s for s in (1e-3, 1e-6, 1e-30, 1e3, 6e4, 1e30)]
    rows += [r.standard_normal(n) * (1 + 50 * (r.random(n) < 0.02)) for _ in range(3)]
    rows += [np.zeros(n), np.full(n, -0.0), np.full(n, 1.5), np.full(n, -3.25), np.abs(r.standard_normal(n)), -np.abs(r.standard_normal(n))]
    rows += [np.arange(n) - 128.0, (np.arange(n) % 32 - 16) / 2.0, (np.arange(n) % 33 - 16) / 4.0, np.round(r.standard_normal(n) * 8) / 8]
    rows += [r.choice([-1.0, 0.0, 1.0], n), r.choice([-0.5, 0.5], n), np.full(n, 1e-42), r.standard_normal(n) * 1e-39]
    rows += [np.where(np.arange(n) % 32 == 7, -8.0, r.integers(-15, 16, n) / 2.0), np.where(np.arange(n) % 32 == 9, 127.0, r.integers(-253, 254, n) / 2.0)]
    return np.stack(rows).astype(np.float32)


def encode_cases():
    x = inputs()
    cases = {"input": x}
    for kind in ENCODERS:
        cases[kind.name.lower()] = quants.quantize(x, kind).view(np.uint8)
    return cases


def grids():
    for n in ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_S", "IQ3_XXS", "IQ3_S"]:
        k = getattr(quants, n)
        k.init_grid()
        digits = [int(v) for v in k.grid_map]
        words = sorted(sum(digits.index(int(v)) * len(digits) ** i for i, v in enumerate(row)) for row in k.grid.reshape(k.grid_shape))
        bitmap = sum(1 << w for w in words)
        print(n, " ".join(hex(bitmap >> 64 * i & (1 << 64) - 1) for i in range((len(digits) ** k.grid_shape[1] + 63) // 64)))


def main():
    if "--grids" in sys.argv:
        return grids()
    files = {"decode": decode_cases(), "encode": encode_cases()}
    wrong = []
    for name, cases in files.items():
        path = HERE / f"{name}.safetensors"
        if "--check" not in sys.argv:
            save_file(cases, path)
            path.chmod(0o644)
            continue
        old = load_file(path)
        wrong += [f"{name}: {k}" for k in cases.keys() | old.keys()
                  if k not in old or k not in cases or cases[k].tobytes() != old[k].tobytes()]
    if "--check" in sys.argv:
        print("\n".join(sorted(wrong)) or "all equal")
        sys.exit(bool(wrong))


main()
