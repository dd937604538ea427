#!/usr/bin/env bash
# How long a model of 1B shape takes until it is ready, warm: from the checkpoint and from a pack, bf16 as safetensors (rows
# used where they lie) and q8_0 as GGUF (whose rows are permuted at load). Not part of the tests. Exit 1 when a pack takes
# more than 100 ms. Usage: bash tests/bench/pack.sh [BUILD_FOLDER]. Needs 5 GB in the temporary folder, and numpy ($PYTHON).
set -euo pipefail
build=${1:-build}
modelc=$build/codegen/driver/modelc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bf16" "$work/q8_0"
"${PYTHON:-python3}" - "$work/bf16" <<'PYTHON'
import json, sys, numpy
folder, h, f, layers, heads, kv, d, vocab = sys.argv[1], 2048, 8192, 16, 32, 8, 64, 128256
shapes = {"model.embed_tokens.weight": [vocab, h], "model.norm.weight": [h]}
for i in range(layers):
    p = f"model.layers.{i}."
    shapes |= {p + "self_attn.q_proj.weight": [heads * d, h], p + "self_attn.k_proj.weight": [kv * d, h],
               p + "self_attn.v_proj.weight": [kv * d, h], p + "self_attn.o_proj.weight": [h, heads * d],
               p + "mlp.gate_proj.weight": [f, h], p + "mlp.up_proj.weight": [f, h], p + "mlp.down_proj.weight": [h, f],
               p + "input_layernorm.weight": [h], p + "post_attention_layernorm.weight": [h]}
header, at = {}, 0
for name, shape in shapes.items():
    n = 2 * int(numpy.prod(shape))
    header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + n]}
    at += n
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
# What the weights are is no matter to a load: 4 MB of small numbers, again and again.
some = (numpy.random.default_rng(1).standard_normal(1 << 21).astype("<f4") * 0.02).view("<u4") >> 16
some = some.astype("<u2").tobytes()
with open(folder + "/model.safetensors", "wb") as out:
    out.write(len(text).to_bytes(8, "little") + text)
    while at > 0:
        out.write(some[:min(at, len(some))])
        at -= len(some)
json.dump({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": h, "intermediate_size": f,
           "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": d,
           "vocab_size": vocab, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
           "tie_word_embeddings": True, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2,
           "torch_dtype": "bfloat16"}, open(folder + "/config.json", "w"), indent=1)
PYTHON
model=examples/llama/llama.model
"$modelc" convert $model "$work/bf16" "$work/q8_0/model.gguf" --quantize q8_0 --no-tokenizer > /dev/null
slow=0
ready() { # NAME FOLDER [OPTION]: the best of five loads, in milliseconds, of a process that is warm
  local name=$1 folder=$2 best
  shift 2
  best=$(for _ in 1 2 3 4 5; do
    "$modelc" bench $model --checkpoint "$folder" -p 1 -n 1 -r 1 --json "$@" 2> /dev/null
  done | sed 's/.*"load_seconds":\([0-9.e-]*\).*/\1/' | sort -g | awk 'NR == 1 { printf "%.1f", $1 * 1000 }')
  printf '%-24s %9s ms\n' "$name" "$best"
  if [ "${1:-}" != --no-pack ] && awk -v t="$best" 'BEGIN { exit !(t > 100) }'; then slow=1; fi
}
for kind in bf16 q8_0; do
  ready "$kind, checkpoint" "$work/$kind" --no-pack
  "$modelc" pack $model "$work/$kind"
  stat -c '%s bytes of pack' "$work/$kind"/*.pack
  ready "$kind, pack" "$work/$kind"
done
exit $slow
