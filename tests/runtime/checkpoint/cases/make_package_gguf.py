#!/usr/bin/env python3
"""Writes package.gguf with the PyPI package gguf (0.19): what is read from it and written again must be the same bytes. `--check`
compares with the committed file; `--read FILE` prints what the package finds in a file that modelc wrote."""
import pathlib
import sys
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGUFReader, GGUFWriter, quants

HERE = pathlib.Path(__file__).parent


def write(path):
    r = np.random.default_rng(2)
    w = GGUFWriter(path, "tiny")
    w.add_name("a tiny file")
    w.add_uint32("tiny.block_count", 2)
    w.add_float32("tiny.attention.layer_norm_rms_epsilon", 1e-5)
    w.add_array("tokenizer.ggml.tokens", ["<s>", "a", "größe", ""])
    w.add_array("tokenizer.ggml.scores", [0.0, -1.5, -2.0, -3.0])
    w.add_bool("tokenizer.ggml.add_bos_token", True)
    w.add_tensor("output_norm.weight", r.standard_normal(32).astype(np.float32))
    w.add_tensor("half.weight", r.standard_normal((3, 5)).astype(np.float16))
    for kind in (T.Q4_0, T.Q5_1, T.Q8_0, T.BF16):
        w.add_tensor(f"{kind.name.lower()}.weight", quants.quantize(r.standard_normal((3, 64)).astype(np.float32), kind), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    if "--read" in sys.argv:
        reader = GGUFReader(sys.argv[sys.argv.index("--read") + 1])
        for t in reader.tensors:
            values = quants.dequantize(t.data, t.tensor_type) if t.tensor_type.name[0] in "FBQITMN" else t.data
            print(t.name, t.tensor_type.name, list(map(int, reversed(t.shape))), float(np.asarray(values, np.float64).sum()))
        print(len(reader.fields), "fields")
    elif "--check" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            write(pathlib.Path(folder) / "x.gguf")
            same = (pathlib.Path(folder) / "x.gguf").read_bytes() == (HERE / "package.gguf").read_bytes()
        print("equal" if same else "package.gguf differs")
        sys.exit(not same)
    else:
        write(HERE / "package.gguf")


main()
