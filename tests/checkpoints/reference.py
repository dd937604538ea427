#!/usr/bin/env python3
"""What transformers and tokenizers compute from SmolLM2-135M-Instruct as the GGUF holds it (README.md).

    python3 reference.py SmolLM2-135M-Instruct.Q4_1.gguf FOLDER

Writes into FOLDER:
    expected.safetensors   input_ids and logits of 512 positions, f32, of the dequantised weights
    chat.txt               the prompt that jinja2 makes of QUESTION, and greedy.txt the ids that follow it
    ids.txt                a line `text as JSON <tab> ids` for each of TEXTS (texts.py)

The weights are read with the package gguf and put into LlamaForCausalLM; the rows of q and k are brought back from the
order in which the file has them (pairs side by side) to that of transformers (halves). The tokenizer is put together as
the published tokenizer.json has it: single digits, then the byte-level pattern, then the merges.

Needs torch, transformers, tokenizers, safetensors, gguf, jinja2.
"""
import json
import sys
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from gguf import GGUFReader, dequantize
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from texts import TEXTS

POSITIONS = 512
QUESTION = "What is the capital of France?"


def main(path, folder):
    folder.mkdir(parents=True, exist_ok=True)
    reader = GGUFReader(path)
    value = lambda key: reader.fields[key].contents()
    tokenizer = read_tokenizer(value)
    model = read_model(reader, value)

    with open(folder / "ids.txt", "w", encoding="utf-8") as f:
        for text in TEXTS:
            print(json.dumps(text), ",".join(map(str, tokenizer.encode(text).ids)), sep="\t", file=f)

    import jinja2.sandbox
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    chat = environment.from_string(value("tokenizer.chat_template")).render(
        messages=[{"role": "user", "content": QUESTION}], add_generation_prompt=True)
    (folder / "chat.txt").write_text(chat, encoding="utf-8")

    # A text of the repository's own, long enough and not all of one kind.
    text = (Path(__file__).resolve().parents[2] / "runtime/sampler/README.md").read_text(encoding="utf-8")
    ids = torch.tensor([tokenizer.encode(text).ids[:POSITIONS]])
    assert ids.shape == (1, POSITIONS), "the text is too short"
    end = value("tokenizer.ggml.eos_token_id")
    with torch.no_grad():
        logits = model(ids).logits
        prompt = torch.tensor([tokenizer.encode(chat).ids])
        answer = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=32,
                                eos_token_id=end, pad_token_id=end)[0, prompt.shape[1]:].tolist()
    answer = answer[:answer.index(end)] if end in answer else answer
    (folder / "greedy.txt").write_text(",".join(map(str, answer)), encoding="utf-8")
    safetensors.torch.save_file({"input_ids": ids, "logits": logits.contiguous()}, folder / "expected.safetensors")
    print("answer:", tokenizer.decode(answer))


def read_tokenizer(value):
    tokens = value("tokenizer.ggml.tokens")
    merges = [tuple(m.split(" ")) for m in value("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True)
                                  for t, kind in zip(tokens, value("tokenizer.ggml.token_type")) if kind == 3])
    return tokenizer


def read_model(reader, value):
    heads, kv_heads = value("llama.attention.head_count"), value("llama.attention.head_count_kv")
    config = LlamaConfig(
        vocab_size=len(value("tokenizer.ggml.tokens")), hidden_size=value("llama.embedding_length"),
        intermediate_size=value("llama.feed_forward_length"), num_hidden_layers=value("llama.block_count"),
        num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=value("llama.context_length"),
        rms_norm_eps=value("llama.attention.layer_norm_rms_epsilon"), tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": value("llama.rope.freq_base")})
    names = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    state = {}
    for t in reader.tensors:
        w = np.array(dequantize(t.data, t.tensor_type), dtype=np.float32).reshape([int(n) for n in reversed(t.shape)])
        part = t.name.removesuffix(".weight").split(".")
        if part[0] == "blk":
            for kind, n in (("attn_q", heads), ("attn_k", kv_heads)):
                if part[2] == kind:
                    w = w.reshape(n, w.shape[0] // n // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
            name = f"model.layers.{part[1]}.{names[part[2]]}.weight"
        else:
            name = {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[part[0]]
        state[name] = torch.from_numpy(np.ascontiguousarray(w))
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model = LlamaForCausalLM(config).float().eval()
    model.load_state_dict(state, strict=True)
    return model


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
