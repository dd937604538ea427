#!/usr/bin/env python3
"""Writes small low-rank adapters in PEFT's form, the base that they are for, and the merged weights as PyTorch computes them by
PEFT's formula: W + scale · (B @ A), the product turned where fan_in_fan_out says so or the layer is an embedding; scale is
lora_alpha / r, with use_rslora lora_alpha / sqrt(r); rank_pattern and alpha_pattern by the first key that ends the module's name.
Needs torch and safetensors. `--check` compares with the committed files instead."""
import json
import math
import pathlib
import re
import sys

import torch
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
torch.manual_seed(20)
LAYER = {"self_attn.q_proj": (12, 8), "self_attn.v_proj": (4, 8), "mlp.up_proj": (10, 8), "mlp.down_proj": (8, 10)}
BASE = {"model.embed_tokens.weight": torch.randn(16, 8), "lm_head.weight": torch.randn(16, 8)}
for i in range(2):
    for name, shape in LAYER.items():
        BASE[f"model.layers.{i}.{name}.weight"] = torch.randn(shape) / math.sqrt(shape[1])
    BASE[f"model.layers.{i}.self_attn.q_proj.bias"] = torch.randn(12)


def first(patterns, module, otherwise):
    for key, value in patterns.items():
        if re.match(rf"(.*\.)?({key})$", module):
            return value
    return otherwise


def config(**changes):
    whole = {"alpha_pattern": {}, "auto_mapping": None, "base_model_name_or_path": "tiny", "bias": "none", "fan_in_fan_out": False,
             "inference_mode": True, "init_lora_weights": True, "layers_pattern": None, "layers_to_transform": None, "lora_alpha": 8,
             "lora_dropout": 0.05, "modules_to_save": None, "peft_type": "LORA", "r": 4, "rank_pattern": {}, "revision": None,
             "target_modules": [], "task_type": "CAUSAL_LM", "use_dora": False, "use_rslora": False}
    return whole | changes


def make(name, settings, base, modules, embeddings=(), whole=None):
    """One adapter; gives what merging makes of the base's weights that it changes."""
    tensors, merged = {}, {}
    for module in [*modules, *embeddings]:
        w = base[module + ".weight"]
        r = first(settings["rank_pattern"], module, settings["r"])
        alpha = first(settings["alpha_pattern"], module, settings["lora_alpha"])
        scale = alpha / (math.sqrt(r) if settings["use_rslora"] else r)
        turned = settings["fan_in_fan_out"] or module in embeddings
        out, inner = (w.shape[1], w.shape[0]) if turned else w.shape
        a, b = torch.randn(r, inner), torch.randn(out, r)
        kind = ("lora_embedding_A", "lora_embedding_B") if module in embeddings else ("lora_A.weight", "lora_B.weight")
        for end, value in zip(kind, (a, b)):
            tensors[f"base_model.model.{module}.{end}"] = value.contiguous()
        delta = (b @ a) * scale
        merged[module + ".weight"] = (w + (delta.T if turned else delta)).contiguous()
    for tensor, value in (whole or {}).items():
        tensors[f"base_model.model.{tensor}"] = value
        merged[tensor.replace(".base_layer", "")] = value
    folder = HERE / name
    return {folder / "adapter_config.json": json.dumps(settings, indent=2) + "\n", folder / "adapter_model.safetensors": tensors,
            folder / "merged.safetensors": merged}


def each(names):
    return [f"model.layers.{i}.{n}" for i in range(2) for n in names]


def main():
    files = {HERE / "base.safetensors": BASE}
    files |= make("plain", config(target_modules=["q_proj", "v_proj"]), BASE, each(["self_attn.q_proj", "self_attn.v_proj"]))
    files |= make("patterns", config(target_modules=["q_proj", "up_proj", "down_proj"], use_rslora=True, rank_pattern={"up_proj": 2, "layers.1.mlp.down_proj": 3},
                                     alpha_pattern={"^model.layers.0.mlp.down_proj": 5.5}),
                  BASE, each(["self_attn.q_proj", "mlp.up_proj", "mlp.down_proj"]))
    files |= make("saved", config(target_modules=["embed_tokens", "q_proj"], modules_to_save=["lm_head"], bias="all"), BASE, each(["self_attn.q_proj"]),
                  ["model.embed_tokens"],
                  {"lm_head.weight": torch.randn(16, 8), "model.layers.0.self_attn.q_proj.base_layer.bias": torch.randn(12)})
    # GPT-2 stores its matrices [in, out].
    turned = {k: v.T.contiguous() if v.dim() == 2 else v for k, v in BASE.items()}
    files |= make("turned", config(target_modules=["up_proj"], fan_in_fan_out=True), turned, each(["mlp.up_proj"]))
    for path, content in files.items():
        if "--check" in sys.argv:
            same = path.read_text() == content if isinstance(content, str) else all(torch.equal(v, load_file(path)[k]) for k, v in content.items())
            if not same:
                sys.exit(f"{path} differs")
            continue
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, str):
            path.write_text(content)
        else:
            save_file(content, path, metadata={"format": "pt"})


main()
