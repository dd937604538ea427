#!/usr/bin/env bash
# bench: figures with the machine's limits of the same run, for a person, a program and as a picture.
source "$(dirname "$0")/lib.sh"

bench() { "$modelc" bench examples/llama/llama.model --checkpoint examples/tiny -p 24 -n 6 -r 2 --threads 2 "$@"; }
expect "for a person" 0 "prefill of 24" "decode of 6" "tokens/s" "of the read" "limits of this machine" "1 thread" "2 threads" \
  "f32 multiply-adds, portable" "first token after" "peak memory" "mode fast" -- bench
expect "in mode exact" 0 "mode exact" -- bench --mode exact
expect "with a profile" 0 "model.layers.*.self_attn.q_proj, k_proj, v_proj" "lm_head" "model.layers.*.self_attn.cache" \
  -- bench --profile "$work/p.svg"
bench --profile "$work/p.svg" --json > "$work/json" 2> "$work/log" || fail "--json" "$(cat "$work/log")"
if python3 - "$work" <<'P' > "$work/log" 2>&1; then pass "--json and the picture"; else fail "--json and the picture" "$(cat "$work/log")"; fi
import json, sys, xml.dom.minidom
lines = open(sys.argv[1] + "/json").read().splitlines()
assert len(lines) == 1, lines
j = json.loads(lines[0])
assert [l["threads"] for l in j["limits"]] == [1, 2], j["limits"]
for rate in ("prefill_tokens_per_second", "decode_tokens_per_second"):
    f = j[rate]
    assert 0 < f["min"] <= f["median"] <= f["max"], f
assert j["prompt_tokens"] == 24 and j["tokens"] == 6 and j["repetitions"] == 2
# Narrow numbers where the processor has instructions for them, as the system says.
flags = open("/proc/cpuinfo").read().split()
wanted = {"int8 multiply-adds, avx512vnni": "avx512_vnni", "f16 multiply-adds, avx512fp16": "avx512_fp16", "bf16 multiply-adds, amx": "amx_bf16",
          "int8 multiply-adds, amx": "amx_int8"}
for l in j["limits"]:
    assert {k for k, flag in wanted.items() if flag in flags} == set(l["narrow_operations_per_second"]), l
    assert all(v > 0 for v in l["narrow_operations_per_second"].values()), l
    # Narrower numbers are there to go faster.
    assert all(v > max(l["f32_operations_per_second"].values()) for v in l["narrow_operations_per_second"].values()), l
assert 0 < j["decode_share_of_read"] and 0 < j["prefill_share_of_arithmetic"]
# What a product does follows from the shapes: 24 tokens, and the rows of q, k and v of all layers.
config = json.load(open("examples/tiny/config.json"))
d = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
rows = (config["num_attention_heads"] + 2 * config["num_key_value_heads"]) * d
qkv = [r for r in j["prefill_profile"] if r["of"] == "q_proj, k_proj, v_proj"]
assert len(qkv) == 1 and qkv[0]["calls"] == config["num_hidden_layers"], qkv
assert qkv[0]["operations"] == 2 * 24 * rows * config["hidden_size"] * config["num_hidden_layers"], qkv
head = [r for r in j["decode_profile"] if r["of"] == "lm_head" or r["of"] == "embed_tokens" and r["operation"] == "linear"]
assert len(head) == 1 and head[0]["calls"] == 6, head
attend = [r for r in j["decode_profile"] if r["operation"] == "attend"]
assert len(attend) == 1 and attend[0]["of"] == "cache" and attend[0]["module"] == "model.layers.*.self_attn", attend
svg = xml.dom.minidom.parse(sys.argv[1] + "/p.svg")
texts = [t.firstChild.data for t in svg.getElementsByTagName("text")]
assert "prefill of 24 tokens" in texts and any("of the limit" in t for t in texts), texts
P
expect "a picture that cannot be written" 1 "/nowhere" -- bench --profile /nowhere/p.svg
expect "more than the context" 1 "context" -- bench -c 100000
finish
