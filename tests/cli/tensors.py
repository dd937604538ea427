#!/usr/bin/env python3
"""Changes a copy of a tiny checkpoint, as the scripts beside it ask: tensors.py FOLDER_OR_GGUF COMMAND… Standard library only.

  drop NAME            without the tensor             rename NAME NEW      under another name
  zeros NAME d,d       a new f32 tensor of zeros      copy NAME NEW        the same bytes under another name
  flip NAME ROW        one byte of that row changes   turn NAME            axes 1 and 2 change places, the shape too
  reshape NAME d,d     another shape, the same bytes  stack NEW NAME…      the tensors as one, with a new first axis
  config KEY JSON      the value in config.json       unset KEY            without the key
  shift N              the data begin N bytes later: tensors at odd addresses
  to_gguf ARCH ADD     writes model.gguf beside it: norms with ADD added; names and metadata of llama.cpp's converter
"""
import json
import pathlib
import struct
import sys

WIDTH = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1}


def read(path):
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    return {k: [v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]] for k, v in header.items()}


def write(path, tensors, pad=0):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 + pad)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def transposed(shape, data, width):
    e, r, c = shape
    rows = [data[((k * r + i) * c + j) * width:((k * r + i) * c + j + 1) * width] for k in range(e) for j in range(c) for i in range(r)]
    return [e, c, r], b"".join(rows)


def main():
    folder, command, args = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    config_file, file = folder / "config.json", folder / "model.safetensors"
    if command in ("config", "unset"):
        config = json.loads(config_file.read_text())
        at, *keys = config, *args[0].split(".")
        for k in keys[:-1]:
            at = at[k]
        if command == "unset":
            del at[keys[-1]]
        else:
            at[keys[-1]] = json.loads(args[1])
        config_file.write_text(json.dumps(config, indent=2))
        return
    t = read(file)
    sizes = lambda s: [int(d) for d in s.split(",")]
    if command == "drop":
        del t[args[0]]
    elif command == "rename":
        t = {args[1] if k == args[0] else k: v for k, v in t.items()}
    elif command == "zeros":
        shape = sizes(args[1])
        count = 1
        for d in shape:
            count *= d
        t[args[0]] = ["F32", shape, bytes(4 * count)]
    elif command == "copy":
        t[args[1]] = t[args[0]]
    elif command == "flip":
        dtype, shape, data = t[args[0]]
        at = int(args[1]) * (len(data) // shape[0])
        t[args[0]] = [dtype, shape, data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]]
    elif command == "reshape":
        t[args[0]][1] = sizes(args[1])
    elif command == "turn":
        dtype, shape, data = t[args[0]]
        t[args[0]] = [dtype, *transposed(shape, data, WIDTH[dtype])]
    elif command == "stack":
        parts = [t.pop(a) for a in args[1:]]
        t[args[0]] = [parts[0][0], [len(parts), *parts[0][1]], b"".join(p[2] for p in parts)]
    elif command == "to_gguf":
        to_gguf(folder / "model.gguf", json.loads(config_file.read_text()), t, args[0], float(args[1]))
        return
    write(file, t, int(args[0]) if command == "shift" else 0)


def to_gguf(path, c, tensors, arch, add):
    """The names of llama.cpp's converter for decoders with norms before and after each part (gemma3)."""
    names = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
             "post_feedforward_layernorm": "post_ffw_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
             "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    top = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    text = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()
    u32 = lambda k, v: text(k) + struct.pack("<II", 4, v)
    f32 = lambda k, v: text(k) + struct.pack("<If", 6, v)
    pattern = c.get("sliding_window_pattern") or c.get("_sliding_window_pattern")
    entries = [text("general.architecture") + struct.pack("<I", 8) + text(arch)]
    for key, value in (("context_length", c["max_position_embeddings"]), ("embedding_length", c["hidden_size"]), ("block_count", c["num_hidden_layers"]),
                       ("feed_forward_length", c["intermediate_size"]), ("attention.head_count", c["num_attention_heads"]),
                       ("attention.head_count_kv", c["num_key_value_heads"]), ("attention.key_length", c["head_dim"]),
                       ("attention.value_length", c["head_dim"]), ("attention.sliding_window", c["sliding_window"])):
        entries.append(u32(f"{arch}.{key}", value))
    if pattern:
        entries.append(u32(f"{arch}.attention.sliding_window_pattern", pattern))
    entries += [f32(f"{arch}.attention.layer_norm_rms_epsilon", c["rms_norm_eps"]), f32(f"{arch}.rope.freq_base", c["rope_theta"]),
                f32(f"{arch}.rope.freq_base_swa", c["rope_local_base_freq"])]
    entries.append(text("tokenizer.ggml.model") + struct.pack("<I", 8) + text("gpt2"))
    tokens = [f"t{i}" for i in range(c["vocab_size"])]
    entries.append(text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(tokens)) + b"".join(text(x) for x in tokens))
    infos, data = [], b""
    for name, (dtype, shape, values) in tensors.items():
        assert dtype == "F32"
        module, _, kind = name.rpartition(".")
        if module in top:
            called = f"{top[module]}.{kind}"
        else:
            _, _, layer, rest = module.split(".", 3)
            called = f"blk.{layer}.{names[rest]}.{kind}"
        if "norm" in module:
            values = struct.pack(f"<{len(values) // 4}f", *(v + add for v in struct.unpack(f"<{len(values) // 4}f", values)))
        data += bytes(-len(data) % 32)
        infos.append(text(called) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", d) for d in reversed(shape)) + struct.pack("<IQ", 0, len(data)))
        data += values
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(entries)) + b"".join(entries) + b"".join(infos)
    path.write_bytes(head + bytes(-len(head) % 32) + data)


main()
