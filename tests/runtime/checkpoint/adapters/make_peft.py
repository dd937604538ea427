#!/usr/bin/env python3
"""Writes adapters as the package peft saves them, for the checkpoint examples/llama/fixtures/llama-tiny, and the logits that peft and
transformers compute with them: peft-*/ (adapter_config.json, adapter_model.safetensors, expected.safetensors with input_ids and
logits of the adapter run beside its base; the merged model's must agree). `--check` compares with the committed files.
Needs peft, torch, transformers and safetensors; the committed files are of peft 0.21 and transformers 5.24."""
import json
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
BASE = HERE.parents[3] / "examples/llama/fixtures/llama-tiny"
ADAPTERS = {
    "peft-plain": dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]),
    "peft-patterns": dict(r=4, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "o_proj", "up_proj", "down_proj"],
                          rank_pattern={"up_proj": 2, "layers.1.mlp.down_proj": 3}, alpha_pattern={"^model.layers.0.mlp.down_proj": 5.5}),
    "peft-saved": dict(r=2, lora_alpha=3, target_modules=["embed_tokens", "k_proj", "gate_proj"], modules_to_save=["lm_head"]),
}


def base():
    return AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32, attn_implementation="eager").eval()


def make(folder, settings):
    torch.manual_seed(31)
    model = get_peft_model(base(), LoraConfig(task_type="CAUSAL_LM", **settings))
    with torch.no_grad():                                     # peft begins with B = 0: an adapter that changes nothing
        for name, p in model.named_parameters():
            if "lora_" in name:
                p.copy_(torch.randn(p.shape) * 0.3)
            elif "modules_to_save" in name:
                p.add_(torch.randn(p.shape) * 0.1)
    model.peft_config["default"].base_model_name_or_path = BASE.name         # and not where it lies here
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)

    # What is compared is what was saved, read by peft again.
    ids = torch.randint(0, 64, (1, 24), generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        plain = base()(ids).logits
        beside = PeftModel.from_pretrained(base(), folder).eval()
        logits = beside(ids).logits
        merged = beside.merge_and_unload()(ids).logits
    assert (logits - merged).abs().max() < 1e-4, "merged and unmerged differ"
    assert (logits - plain).abs().max() > 1e-1, "the adapter changes nothing"
    save_file({"input_ids": ids.to(torch.int32), "logits": logits.contiguous()}, folder / "expected.safetensors")
    for file in folder.glob("*.safetensors"):
        file.chmod(0o644)


def main():
    wrong = 0
    for name, settings in ADAPTERS.items():
        if "--check" not in sys.argv:
            (HERE / name).mkdir(exist_ok=True)
            make(HERE / name, settings)
            continue
        with tempfile.TemporaryDirectory() as d:
            made, kept = pathlib.Path(d), HERE / name
            make(made, settings)
            for file in ("adapter_model.safetensors", "expected.safetensors"):
                a, b = load_file(made / file), load_file(kept / file)
                if set(a) != set(b) or any((a[k].double() - b[k].double()).abs().max() > 1e-5 for k in a):
                    wrong += 1
                    print(f"{name}/{file}: differs")
            a, b = (json.loads((p / "adapter_config.json").read_text()) for p in (made, kept))
            if {k: v for k, v in a.items() if k in settings} != {k: v for k, v in b.items() if k in settings}:
                wrong += 1
                print(f"{name}/adapter_config.json: differs")
    sys.exit(1 if wrong else 0)


main()
