#!/usr/bin/env bash
# The ways in which people's checkpoints fail, each as its kind: a tiny checkpoint (tensors.py changes a fixture) that must load
# and give the reference's logits, or be refused with what was found, what was expected and the way out.
source "$(dirname "$0")/lib.sh"

here=$(dirname "$0")
llama=$PWD/examples/llama/llama.model
moe=$PWD/examples/qwen3_moe/qwen3_moe.model
qwen3=$PWD/examples/qwen3/qwen3.model
gemma=$PWD/examples/gemma3_text/gemma3_text.model
tiny=$PWD/examples/llama/fixtures/llama-tiny
# tweak NAME FIXTURE [COMMAND [; COMMAND]…]: $work/NAME, the fixture with these changes.
tweak() {
  local to=$work/$1 from=$2 words=()
  shift 2
  rm -rf "$to" && cp -r "$from" "$to" && chmod -R u+w "$to"
  for word in "$@" ";"; do
    if [ "$word" != ";" ]; then words+=("$word"); continue; fi
    [ ${#words[@]} -eq 0 ] || python3 "$here/tensors.py" "$to" "${words[@]}" || fail "tensors.py ${words[*]}"
    words=()
  done
}
fits() { expect "$1" 0 passed -- "$modelc" verify "$2" --checkpoint "$3" --expected "$4/expected.safetensors" --within "${5:-1e-4}"; }
# refused NAME MODEL FOLDER TEXT…
refused() {
  local name=$1 model=$2 folder=$3
  shift 3
  expect "$name" 1 "$@" -- "$modelc" check "$model" --checkpoint "$folder"
}

# ---- pairs of rows: half-split in safetensors, interleaved in GGUF; heads for q, key-value heads for k
gguf=$PWD/examples/llama/fixtures/llama-gguf/llama-tiny.gguf
fits "rows as safetensors has them" "$llama" "$tiny" "$tiny" 1e-5
fits "rows as GGUF has them" "$llama" "$gguf" "$tiny" 1e-5
sed 's/attn_k = k_proj via deinterleave_rope_rows(kv_heads)/attn_k = k_proj via deinterleave_rope_rows(heads)/' "$llama" > "$work/heads.model"
expect "k's rows turned by the number of q's heads show in the logits" 1 FAILED -- "$modelc" verify "$work/heads.model" --checkpoint "$gguf" --expected "$tiny/expected.safetensors"

# ---- tied embeddings
tied=$PWD/examples/llama/fixtures/llama-tied
fits "tied, and the file has no head" "$llama" "$tied" "$tied"
expect "said as an alias" 0 "lm_head.weight = alias of model.embed_tokens.weight" -- "$modelc" check "$llama" --checkpoint "$tied"
tweak untied "$tied" config tie_word_embeddings false
refused "not tied, and no head: both facts and both ways out" "$llama" "$work/untied" "error[E0321]" "lm_head.weight" "tie_word_embeddings = false from config.json" \
  "--set tie_word_embeddings=true" "lacks a file, or was saved without it"
tweak tieless "$tied" unset tie_word_embeddings
refused "the key absent: what the model declares counts, and is named" "$llama" "$work/tieless" "lm_head.weight" "tie_word_embeddings" "--set tie_word_embeddings=true"
copy=$PWD/examples/llama/fixtures/llama-tied-copy
fits "tied, with an equal copy in the file" "$llama" "$copy" "$copy"
expect "the copy is noted" 0 "beside its alias" -- "$modelc" run "$llama" --checkpoint "$copy" --tokens 1 -n 1
tweak other "$copy" flip lm_head.weight 7
expect "tied, with a copy of which one byte differs: the first row" 1 "lm_head.weight differs from model.embed_tokens.weight" "first in row 7" "turn the alias off" -- \
  "$modelc" run "$llama" --checkpoint "$work/other" --tokens 1 -n 1

expect "what a load refuses, as JSON" 1 '"severity":"error","kind":"alias-conflict"' '"help":"if the two are one' -- \
  "$modelc" run "$llama" --checkpoint "$work/other" --tokens 1 -n 1 --json

# ---- head_dim
for name in head-dim-null odd; do fits "head_dim: $name" "$llama" "$PWD/examples/llama/fixtures/llama-$name" "$PWD/examples/llama/fixtures/llama-$name"; done
tweak nodim "$tiny" unset head_dim
refused "head_dim by division, where the file has another: the shape as formula, with each factor" "$llama" "$work/nodim" "error[E0312]" "model.layers.{0,1}.self_attn.q_proj.weight, 2 weights: shape [64, 32]" \
  "expected [heads * d, hidden_size] = [4 * 8, 32]" "heads = num_attention_heads = 4 from config.json" "model.safetensors"

# ---- theta in two places, in neither, and twice
for name in theta-params theta-both; do fits "rope_theta: $name" "$llama" "$PWD/examples/llama/fixtures/llama-$name" "$PWD/examples/llama/fixtures/llama-$name"; done
tweak differ "$PWD/examples/llama/fixtures/llama-theta-both" config rope_theta 10000.0
refused "given twice and differently" "$llama" "$work/differ" "rope_theta" "10000" "500000"
tweak neither "$tiny" unset rope_theta
refused "given nowhere: no default" "$llama" "$work/neither" "error[E0204]" "rope_theta"
for name in rope-type-key rope-llama3 rope-llama3-params; do
  fits "rope scaling: $name" "$llama" "$PWD/examples/llama/fixtures/llama-$name" "$PWD/examples/llama/fixtures/llama-$name"
done
tweak scaling "$tiny" config rope_scaling '{"rope_type": "spiral", "factor": 2.0}'
refused "a scaling that is none" "$llama" "$work/scaling" "spiral" "llama3"
tweak unread "$PWD/examples/llama/fixtures/llama-rope-llama3" config rope_scaling.stretch 3
refused "a key within a scaling that nothing reads" "$llama" "$work/unread" "error[E0201]" "stretch"

# ---- names: near ones, many alike, strict off
tweak near "$tiny" rename model.layers.1.mlp.up_proj.weight model.layers.1.mlp.upproj.weight
refused "missing and unexpected in one report, with the near name" "$llama" "$work/near" "error[E0321]" "error[E0401]" "did you mean model.layers.1.mlp.upproj.weight"
expect "a missing weight is an error without strict, too" 1 "error[E0321]" -- "$modelc" check "$llama" --checkpoint "$work/near" --no-strict
tweak freq "$tiny" zeros model.layers.0.self_attn.rotary_emb.inv_freq 8 ";" zeros model.layers.1.self_attn.rotary_emb.inv_freq 8
expect "buffers of old files, ignored by a rule" 0 'ignored by `ignore **.rotary_emb.inv_freq`: model.layers.{0,1}.self_attn.rotary_emb.inv_freq, 2 tensors' -- \
  "$modelc" check "$llama" --checkpoint "$work/freq"
grep -v 'ignore \*\*.rotary_emb.inv_freq' "$llama" > "$work/strict.model"
refused "without the rule one message for both, which names the rule" "$work/strict.model" "$work/freq" "model.layers.{0,1}.self_attn.rotary_emb.inv_freq: no weight of the model asks for these 2 tensors" \
  'ignore model.layers.*.self_attn.rotary_emb.inv_freq' "--no-strict"
expect "and strict off allows them" 0 "not asked for: model.layers.{0,1}.self_attn.rotary_emb.inv_freq, 2 tensors" -- "$modelc" check "$work/strict.model" --checkpoint "$work/freq" --no-strict
tweak far "$tiny" copy model.norm.weight model.layers.4294967296.input_layernorm.weight
refused "a layer beyond 2^32 is a name, not layer 0" "$llama" "$work/far" "error[E0401]" "model.layers.4294967296.input_layernorm.weight"

# ---- config and file disagree
tweak longer "$tiny" config num_hidden_layers 3
refused "a layer too many in the config: once, with the key" "$llama" "$work/longer" "error[E0407]" "model.layers.2: the checkpoint has none of the 9 weights of this element" \
  "it has model.layers.{0,1}" "num_hidden_layers = 3 from config.json:"
tweak shorter "$tiny" config num_hidden_layers 1
refused "a layer too few" "$llama" "$work/shorter" "error[E0407]" "model.layers.1: the checkpoint has 9 tensors of this element" "num_hidden_layers = 1 from config.json:" "--no-strict"
[ "$("$modelc" check "$llama" --checkpoint "$work/longer" 2>&1 | grep -c '^error\[')" = 1 ] && pass "and nothing else is said" || fail "and nothing else is said"
tweak vocab "$tiny" config vocab_size 65
refused "another vocabulary: both weights, with the key" "$llama" "$work/vocab" "model.embed_tokens.weight: shape [64, 32]" "[vocab_size, hidden_size] = [65, 32]" "vocab_size = 65 from config.json:" "lm_head.weight"
expect "the same as JSON" 1 '"code":"E0312"' 'vocab_size = 65 from config.json:' -- "$modelc" check "$llama" --checkpoint "$work/vocab" --json
tweak many "$tiny" config num_hidden_layers 2000000000
refused "two thousand million layers" "$llama" "$work/many" "num_hidden_layers" "1..1024"
tweak model "$tiny" config model_type '"mamba"'
refused "another architecture" "$llama" "$work/model" "error[E0408]" "another architecture" "model_type" "mamba" '"llama"'
refused "the checkpoint of a relative" "$llama" "$PWD/examples/qwen2/fixtures/qwen2-tiny" "error[E0408]" "another architecture" '"qwen2"'

# ---- experts: one by one, stacked, in part, both
each=$PWD/examples/qwen3_moe/fixtures/qwen3-moe-each
stacked=$PWD/examples/qwen3_moe/fixtures/qwen3-moe-stacked
fits "each expert a tensor" "$moe" "$each" "$each"
fits "stacked, of a shape that could be turned" "$moe" "$stacked" "$stacked"
tweak lacks "$each" drop model.layers.2.mlp.experts.2.up_proj.weight
refused "an expert is missing: layer and index" "$moe" "$work/lacks" "error[E0405]" '`each` lacks model.layers.2.mlp.experts.2.up_proj.weight'
tweak half "$each" stack model.layers.0.mlp.experts.down_proj model.layers.0.mlp.experts.{0,1,2,3,4}.down_proj.weight
refused "half one by one, half stacked" "$moe" "$work/half" "error[E0405]" '`each` lacks' '`stacked` lacks'
first=$(python3 -c "
import json, struct
d = open('$stacked/model.safetensors', 'rb').read()
n = struct.unpack('<Q', d[:8])[0]
print(next(k for k, v in json.loads(d[8:8+n]).items() if k.endswith('experts.gate_up_proj')))")
tweak turned "$stacked" turn "$first"
said=$("$modelc" verify "$moe" --checkpoint "$work/turned" --expected "$stacked/expected.safetensors" 2>&1) && fail "the other orientation is never taken for this one" "$said" ||
  pass "the other orientation is never taken for this one"

# ---- norms: w - 1 in one format, w in the other, in each norm there is
norms=$PWD/examples/gemma3_text/fixtures/gemma3-tiny
fits "norms as safetensors has them" "$gemma" "$norms" "$norms"
tweak gguf "$norms" to_gguf gemma3 1
# The scale of its attention is a key that GGUF has no word for: the config.json says it.
verify_gguf() { "$modelc" verify "$gemma" --config "$norms/config.json" --checkpoint "$1" --expected "$norms/expected.safetensors"; }
expect "norms as GGUF has them, one added to each" 0 passed -- verify_gguf "$work/gguf/model.gguf"
count=$(python3 -c "
import json, struct
d = open('$norms/model.safetensors', 'rb').read()
n = struct.unpack('<Q', d[:8])[0]
print(sum('norm' in k for k in json.loads(d[8:8+n])))")
expect "every norm is counted as transformed" 0 "made by \`via offset(-1)\`" -- "$modelc" check "$gemma" --checkpoint "$work/gguf/model.gguf"
made=$("$modelc" check "$gemma" --checkpoint "$work/gguf/model.gguf" 2>&1 | grep -o 'via offset(-1)`: .*' | grep -oE '[0-9]+ tensors' | awk '{ n += $1 } END { print n }')
alone=$("$modelc" check "$gemma" --checkpoint "$work/gguf/model.gguf" 2>&1 | grep 'via offset(-1)`: ' | grep -vc tensors)
[ $((made + alone)) -eq "$count" ] && pass "all $count of them" || fail "all $count norms are transformed" "$made and $alone"
tweak twice "$norms" to_gguf gemma3 0
expect "norms to which nothing was added show in the logits, with the transform said beside them" 1 FAILED "via offset(-1)" -- \
  verify_gguf "$work/twice/model.gguf"
eps=$PWD/examples/llama/fixtures/llama-eps
fits "the epsilon of the config, where it shows" "$llama" "$eps" "$eps"

# ---- norms of q and k: by head, not over the whole projection
heads=$PWD/examples/qwen3/fixtures/qwen3-tiny
fits "norms by head" "$qwen3" "$heads" "$heads"
width=$(python3 -c "import json; c = json.load(open('$heads/config.json')); print(c['num_attention_heads'] * c['head_dim'])")
tweak whole "$heads" zeros model.layers.0.self_attn.q_norm.weight "$width"
refused "a norm over the whole projection: both shapes" "$qwen3" "$work/whole" "error[E0312]" "model.layers.0.self_attn.q_norm.weight: shape [$width]" "expected [" "head_dim ="

# ---- tensors at odd addresses
tweak odd "$tiny" shift 3
fits "tensors at odd addresses" "$llama" "$work/odd" "$tiny"
expect "and read instead of mapped" 0 passed -- "$modelc" verify "$llama" --checkpoint "$work/odd" --expected "$tiny/expected.safetensors" --no-mmap

# ---- adapters, merged at load
mkdir "$work/adapter"
python3 - "$work/adapter" <<'PY'
import json, pathlib, struct, sys
out = pathlib.Path(sys.argv[1])
def tensor(name, shape, f):
    n = shape[0] * shape[1]
    return name, shape, struct.pack(f"<{n}f", *(f(i) for i in range(n)))
parts = [tensor("base_model.model.model.layers.1.mlp.up_proj.lora_A.weight", [2, 32], lambda i: 0.1 * ((i * 7) % 11 - 5)),
         tensor("base_model.model.model.layers.1.mlp.up_proj.lora_B.weight", [48, 2], lambda i: 0.1 * ((i * 5) % 13 - 6))]
header, at = {}, 0
for name, shape, data in parts:
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(data)]}
    at += len(data)
text = json.dumps(header).encode()
(out / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(p[2] for p in parts))
(out / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["up_proj"]}))
PY
run() { "$modelc" run "$llama" --checkpoint "$1" --tokens 1,2,3 -n 1 --trace model.layers.1.mlp.up_proj "${@:2}" 2>&1 | grep up_proj; }
plain=$(run "$tiny") merged=$(run "$tiny" --adapter "$work/adapter") 
# Its own tokenizer is none that is carried out.
mkdir "$work/stored" && cp "$gguf" tests/runtime/tokenizer/cases/word_level.tokenizer.json "$work/stored/" && mv "$work/stored/word_level.tokenizer.json" "$work/stored/tokenizer.json"
stored=$(run "$work/stored" --adapter "$work/adapter")
[ -n "$plain" ] && [ "$plain" != "$(grep -v merged <<< "$merged")" ] && pass "an adapter changes what it names" || fail "an adapter changes what it names" "$plain
$merged"
[ "$(grep -v merged <<< "$merged")" = "$(grep -v -e merged -e 'made by' <<< "$stored")" ] && pass "in a GGUF file as in safetensors" || fail "in a GGUF file as in safetensors" "$merged
$stored"
# Saved by the package peft, which computed the logits (tests/runtime/checkpoint/adapters/make_peft.py); the same on a GGUF of the base.
for adapter in tests/runtime/checkpoint/adapters/peft-*/; do
  for base in "$tiny" "$gguf"; do
    expect "$(basename "$adapter") on $(basename "$base"): peft's logits" 0 passed -- "$modelc" verify "$llama" --checkpoint "$base" --adapter "$adapter" \
      --expected "$adapter/expected.safetensors" --within 1e-4
  done
done
expect "a folder that is no adapter" 1 "adapter_config.json" "an adapter is a folder" -- "$modelc" run "$llama" --checkpoint "$tiny" --tokens 1 -n 1 --adapter "$tiny"
sed -i 's/"lora_alpha"/"lora_alpah": 3, "lora_alpha"/' "$work/adapter/adapter_config.json"
expect "an adapter's key that is not known" 1 'the key "lora_alpah" is not known' 'did you mean "lora_alpha"?' -- "$modelc" run "$llama" --checkpoint "$tiny" --tokens 1 -n 1 --adapter "$work/adapter"
finish
