#!/usr/bin/env bash
# convert: folder -> GGUF -> folder through the models' checkpoint blocks; quantised; in shards; and nothing half-written.
source "$(dirname "$0")/lib.sh"

here=$(dirname "$0")
llama=$PWD/examples/llama/llama.model
fixtures=$PWD/examples/llama/fixtures
tiny=$PWD/examples/tiny
same() { python3 "$here/compare_tensors.py" same "$@"; }
nothing_left() { if [ -z "$(ls -A "$2")" ]; then pass "$1"; else fail "$1" "$(ls -A "$2")"; fi; }

# ---- there and back
there_and_back() { # NAME MODEL FOLDER same|ulp
  expect "$1 as GGUF" 0 "tensors" -- "$modelc" convert "$2" "$3" "$work/$1.gguf"
  expect "$1: inspected" 0 "general.architecture" -- "$modelc" inspect "$work/$1.gguf"
  expect "$1: its GGUF is checked like any other" 0 ":" -- "$modelc" check "$2" --checkpoint "$work/$1.gguf"
  expect "$1 back" 0 "tensors" -- "$modelc" convert "$2" "$work/$1.gguf" "$work/$1.back"
  expect "$1: the tensors are those that were" 0 same -- python3 "$here/compare_tensors.py" "$4" "$3" "$work/$1.back"
  expect "$1: the folder is checked" 0 ":" -- "$modelc" check "$2" --checkpoint "$work/$1.back"
}
there_and_back llama-tiny "$llama" "$fixtures/llama-tiny" same
there_and_back llama-bf16 "$llama" "$fixtures/llama-bf16" same
there_and_back llama-f16 "$llama" "$fixtures/llama-f16" same
there_and_back llama-tied "$llama" "$fixtures/llama-tied" same
there_and_back llama-bias "$llama" "$fixtures/llama-bias" same
for form in gguf back; do
  expect "llama-bias.$form gives the reference's logits" 0 passed -- "$modelc" verify "$llama" --checkpoint "$work/llama-bias.$form" --expected "$fixtures/llama-bias/expected.safetensors"
done
there_and_back llama-linear "$llama" "$fixtures/llama-rope-linear" same
there_and_back qwen2 "$PWD/examples/qwen2/qwen2.model" "$PWD/examples/qwen2/fixtures/qwen2-tiny" same
there_and_back qwen3 "$PWD/examples/qwen3/qwen3.model" "$PWD/examples/qwen3/fixtures/qwen3-tiny" same
there_and_back tiny "$llama" "$tiny" same
cp -r examples/gemma3_text/fixtures/gemma3-tiny "$work/gemma"
chmod -R u+w "$work/gemma"
sed -i 's/"query_pre_attn_scalar": [0-9.]*/"query_pre_attn_scalar": 8/' "$work/gemma/config.json"
there_and_back gemma3 "$PWD/examples/gemma3_text/gemma3_text.model" "$work/gemma" ulp
mamba2=$PWD/examples/mamba2/mamba2.model
there_and_back mamba2 "$mamba2" "$PWD/examples/mamba2/fixtures/mamba2-tiny" log
for form in gguf back; do
  expect "mamba2.$form gives the reference's logits" 0 passed -- "$modelc" verify "$mamba2" --checkpoint "$work/mamba2.$form" --expected examples/mamba2/fixtures/mamba2-tiny/expected.safetensors
done
expect "what the file's configuration cannot say is refused" 1 "error[E0604]" "time_step_limit is [0.6, 0.9]" -- "$modelc" convert "$mamba2" examples/mamba2/fixtures/mamba2-limits "$work/limits.gguf"
# What is no rows of a product stays f32, of whatever rank the file has it.
expect "numbers are not packed" 0 tensors -- "$modelc" convert "$mamba2" examples/mamba2/fixtures/mamba2-tiny "$work/mamba2-q8.gguf" --quantize q8_0
expect "and say so" 0 "ssm_a             f32" "ssm_d             f32" "ssm_conv1d" "weight          f32   [52, 4]" -- "$modelc" inspect "$work/mamba2-q8.gguf"
expect "so that the model takes them" 0 ":" -- "$modelc" check "$mamba2" --checkpoint "$work/mamba2-q8.gguf"
expect "what a transform adds is listed" 0 "a number is added" "within 1 ulp" -- "$modelc" convert "$PWD/examples/gemma3_text/gemma3_text.model" "$work/gemma3.gguf" "$work/listed"
expect "the GGUF gives the reference's logits" 0 passed -- "$modelc" verify "$llama" --checkpoint "$work/llama-tiny.gguf" --expected "$fixtures/llama-tiny/expected.safetensors"
expect "so does the folder made of it" 0 passed -- "$modelc" verify "$llama" --checkpoint "$work/llama-tiny.back" --expected "$fixtures/llama-tiny/expected.safetensors"
expect "keys of config.json without a place are named" 0 "not carried: config.json: architectures" -- "$modelc" convert "$llama" "$tiny" "$work/named.gguf"

# ---- tokenizer and text
text() { "$modelc" run "$llama" --checkpoint "$1" --prompt "Once upon a time" -n 24 2>/dev/null | head -n 3; }
expected=$(text "$tiny")
[ -n "$expected" ] && [ "$(text "$work/tiny.gguf")" = "$expected" ] && pass "the GGUF writes the folder's text" || fail "the GGUF writes the folder's text" "$(text "$work/tiny.gguf")"
[ "$(text "$work/tiny.back")" = "$expected" ] && pass "and so does the folder made of it" || fail "and so does the folder made of it" "$(text "$work/tiny.back")"
cp -r "$tiny" "$work/odd"
sed -i 's/"use_regex": true/"use_regex": false/' "$work/odd/tokenizer.json"
expect "a tokenizer that no key describes is refused" 1 "tokenizer.ggml.pre" "--no-tokenizer" -- "$modelc" convert "$llama" "$work/odd" "$work/odd.gguf"
[ ! -e "$work/odd.gguf" ] && pass "and nothing is written" || fail "and nothing is written"
expect "or left out by name" 0 "by --no-tokenizer" -- "$modelc" convert "$llama" "$work/odd" "$work/odd.gguf" --no-tokenizer
expect "then tokens go in and come out" 0 "" -- "$modelc" run "$llama" --checkpoint "$work/odd.gguf" --tokens 1,2 -n 2
# BPE whose merges' order is one of scores, as sentencepiece makes it; and one whose order is not.
by_scores() { # FOLDER MERGES
  cp -r "$fixtures/llama-tiny" "$work/$1"
  chmod -R u+w "$work/$1"
  python3 - "$work/$1" "$2" <<'PY'
import json, os, sys
tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(0x61, 0x71)] + ["▁", "a", "b", "c", "ab", "abc", "▁a", "▁ab"]
added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for i, t in enumerate(tokens[:3])]
space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
part = lambda t: {"SpecialToken": {"id": t, "type_id": 0}}
json.dump({
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, space]}, "pre_tokenizer": None,
    "post_processor": {"type": "TemplateProcessing", "single": [part("<s>"), {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
                       "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
    "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                 {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": {t: i for i, t in enumerate(tokens)},
              "merges": sys.argv[2].split(",")}}, open(os.path.join(sys.argv[1], "tokenizer.json"), "w"))
PY
}
by_scores scores "a b,ab c,▁ a,▁ ab,▁a b"
expect "merges become scores" 0 tensors -- "$modelc" convert "$llama" "$work/scores" "$work/scores.gguf"
expect "of the kind that has them" 0 "tokenizer.ggml.scores" -- "$modelc" inspect "$work/scores.gguf"
expect "and merges again" 0 tensors -- "$modelc" convert "$llama" "$work/scores.gguf" "$work/scores.back"
python3 - "$work/scores/tokenizer.json" "$work/scores.back/tokenizer.json" <<'PY' && pass "in the same order" || fail "in the same order"
import json, sys
a, b = (json.load(open(p))["model"] for p in sys.argv[1:])
pairs = [m if isinstance(m, str) else " ".join(m) for m in b["merges"]]
assert sorted(pairs) == sorted(a["merges"]) and [m.replace(" ", "") for m in pairs] == [m.replace(" ", "") for m in a["merges"]], pairs
assert all(b["vocab"][t] == i for t, i in a["vocab"].items()) and b["byte_fallback"] is True
PY
by_scores mixed "▁ ab,a b,ab c,▁ a,▁a b"
expect "an order that no scores give is refused" 1 "are mixed" -- "$modelc" convert "$llama" "$work/mixed" "$work/mixed.gguf"
by_scores lacking "a b,ab c,▁ a,▁a b"
expect "a pair that would be merged and is not is refused" 1 "do not list each once" -- "$modelc" convert "$llama" "$work/lacking" "$work/mixed.gguf"

# ---- Llama 3's scaling: the file holds what divides the frequencies, made of the configuration
llama3=$fixtures/llama-rope-llama3
there_and_back llama3 "$llama" "$llama3" same
edit() { python3 "$here/gguf_edit.py" "$@"; }
# As transformers' ROPE_INIT_FUNCTIONS has them for this configuration: inv_freq of "default" by that of "llama3".
edit "$work/llama3.gguf" values rope_freqs.weight | python3 -c '
import sys
found, wanted = [float(x) for x in sys.stdin], [1.7359412908554077] + [8.0] * 7
sys.exit(len(found) != 8 or any(abs(a / b - 1) > 3e-7 for a, b in zip(found, wanted)))' && pass "the divisors are transformers'" || fail "the divisors are transformers'" "$(edit "$work/llama3.gguf" values rope_freqs.weight)"
edit "$work/llama3.gguf" keys | grep -q '^llama.rope.scaling' && fail "no key that others would scale by again" || pass "no key that others would scale by again"
for form in llama3.gguf llama3.back; do
  expect "$form gives the reference's logits" 0 passed -- "$modelc" verify "$llama" --checkpoint "$work/$form" --expected "$llama3/expected.safetensors"
done
grep -A7 '"rope_scaling"' "$work/llama3.back/config.json" | tr -d ' \n' | grep -q '"rope_type":"llama3"' && pass "and the configuration says it again" || fail "and the configuration says it again" "$(cat "$work/llama3.back/config.json")"
# As llama.cpp's converter writes it: the tensor alone. It runs as it is, and has no place in a folder without a configuration.
edit "$work/llama3.gguf" without modelc. "$work/foreign.gguf"
expect "the tensor alone gives the reference's logits" 0 passed -- "$modelc" verify "$llama" --checkpoint "$work/foreign.gguf" --expected "$llama3/expected.safetensors"
expect "what no configuration says is not lost in silence" 1 "error[E0604]" "rope.factors" "--config" -- "$modelc" convert "$llama" "$work/foreign.gguf" "$work/refused"
expect "with one it is carried" 0 tensors -- "$modelc" convert "$llama" "$work/foreign.gguf" "$work/given" --config "$llama3/config.json"
expect "the tensors are those of the folder" 0 same -- same "$llama3" "$work/given"
expect "requantised, the divisors stay" 0 tensors -- "$modelc" convert "$llama" "$work/foreign.gguf" "$work/foreign8.gguf" --quantize q8_0
cmp -s <(edit "$work/foreign8.gguf" values rope_freqs.weight) <(edit "$work/llama3.gguf" values rope_freqs.weight) && pass "to the bit" || fail "to the bit"

# ---- rows of q and k as the published model has them: the file says so, and what is written is in the usual order
edit "$work/llama-tiny.gguf" text llama.tensor_data_layout reference "$work/layout.gguf"
for layer in 0 1; do
  edit "$work/layout.gguf" restore blk.$layer.attn_q.weight 64 4 "$work/layout.gguf"
  edit "$work/layout.gguf" restore blk.$layer.attn_k.weight 32 2 "$work/layout.gguf"
done
expect "rows in the reference's order give the reference's logits" 0 passed -- "$modelc" verify "$llama" --checkpoint "$work/layout.gguf" --expected "$fixtures/llama-tiny/expected.safetensors"
expect "and go into a folder" 0 tensors -- "$modelc" convert "$llama" "$work/layout.gguf" "$work/layout"
expect "of the same tensors" 0 same -- same "$fixtures/llama-tiny" "$work/layout"
grep -q tensor_data_layout "$work/layout/config.json" && fail "whose configuration says nothing of it" || pass "whose configuration says nothing of it"
edit "$work/llama-tiny.gguf" text llama.tensor_data_layout "Meta AI original pth" "$work/usual.gguf"
expect "the usual order by its name" 0 passed -- "$modelc" verify "$llama" --checkpoint "$work/usual.gguf" --expected "$fixtures/llama-tiny/expected.safetensors"
edit "$work/llama-tiny.gguf" text llama.tensor_data_layout sideways "$work/sideways.gguf"
expect "an order that is not known is refused" 1 "tensor_data_layout" "sideways" -- "$modelc" check "$llama" --checkpoint "$work/sideways.gguf"

# ---- what the other format has no place for
cp -r "$fixtures/llama-rope-yarn-attn" "$work/yarn"
chmod -R u+w "$work/yarn"
expect "a value that would not come back is refused by name" 1 "error[E0604]" "query_pre_attn_scalar is 5.0 from config.json:" "would come back as 8.0" -- "$modelc" convert "$PWD/examples/gemma3_text/gemma3_text.model" "$PWD/examples/gemma3_text/fixtures/gemma3-tiny" "$work/refused.gguf"
expect "so is one that would be missing" 1 "error[E0604]" "rope_scaling.beta_fast" -- "$modelc" convert "$llama" "$work/yarn" "$work/refused.gguf"
expect "a model without a block for it" 1 "checkpoint gguf" -- "$modelc" convert "$PWD/examples/apertus/apertus.model" "$PWD/examples/apertus/fixtures/apertus-tiny" "$work/refused.gguf"
expect "what is there is not written over" 1 "is there already" -- "$modelc" convert "$llama" "$fixtures/llama-tiny" "$work/llama-tiny.gguf"
expect "an encoding that safetensors does not hold" 2 "--quantize" "bf16" -- "$modelc" convert "$llama" "$fixtures/llama-tiny" "$work/refused" --quantize q8_0
expect "an encoding that there is not" 2 "no such encoding" -- "$modelc" convert "$llama" "$fixtures/llama-tiny" "$work/refused.gguf" --quantize q8
expect "a size that is none" 2 "--max-shard-size" -- "$modelc" convert "$llama" "$fixtures/llama-tiny" "$work/refused" --max-shard-size many
[ ! -e "$work/refused.gguf" ] && [ ! -e "$work/refused" ] && pass "of all these nothing is written" || fail "of all these nothing is written"

# ---- random weights: the same values whatever is written, a configuration with what --set says, a GGUF that other readers open
random() { "$modelc" convert "$llama" random "$@" --config "$tiny/config.json" --set num_hidden_layers=2; }
expect "random weights as a folder" 0 tensors -- random "$work/random"
expect "as GGUF" 0 tensors "random-1 has no tokenizer.json" -- random "$work/random.gguf"
expect "and back, the same values" 0 tensors -- "$modelc" convert "$llama" "$work/random.gguf" "$work/random.back"
expect "the same values in both formats" 0 same -- same "$work/random" "$work/random.back"
expect "--set is in the configuration written" 0 "Llama:" -- "$modelc" check "$llama" --checkpoint "$work/random"
expect "another seed, other values" 0 tensors -- random "$work/random2" --seed 2
if cmp -s "$work/random/model.safetensors" "$work/random2/model.safetensors"; then fail "other values"; else pass "other values"; fi
random "$work/random3" --seed 1 > /dev/null 2>&1
cmp -s "$work/random/model.safetensors" "$work/random3/model.safetensors" && pass "the seed is 1 by itself, and decides" || fail "the seed is 1 by itself, and decides"
expect "quantised as a checkpoint is" 0 tensors -- random "$work/random.q4.gguf" --quantize q4_0
expect "from the folder, the same bytes" 0 tensors -- "$modelc" convert "$llama" "$work/random" "$work/folder.q4.gguf" --quantize q4_0
expect "the size of a vocabulary without texts" 0 "llama.vocab_size" "no_vocab" -- "$modelc" inspect "$work/random.gguf"
expect "it runs" 0 "" -- "$modelc" run "$llama" --checkpoint "$work/random.q4.gguf" --tokens 1,2 -n 2
expect "another model's too" 0 tensors -- "$modelc" convert "$PWD/examples/qwen2/qwen2.model" random "$work/random.qwen.gguf" --config "$PWD/examples/qwen2/fixtures/qwen2-tiny/config.json"
expect "which reads it back" 0 "Qwen2:" -- "$modelc" check "$PWD/examples/qwen2/qwen2.model" --checkpoint "$work/random.qwen.gguf"
expect "random weights need a configuration" 1 "error[E0601]" "--config" -- "$modelc" convert "$llama" random "$work/none"
expect "a seed is for random weights" 2 "--seed" "random" -- "$modelc" convert "$llama" "$tiny" "$work/none" --seed 3
[ ! -e "$work/none" ] && [ -z "$(find "$work" -maxdepth 1 -name '.modelc-random*')" ] && pass "nothing is left" || fail "nothing is left" "$(ls -A "$work")"

# ---- encodings
expect "q8_0: matrices alone" 0 "bf16 -> q8_0" "bf16 -> f32 (exact)" -- "$modelc" convert "$llama" "$tiny" "$work/q8.gguf" --quantize q8_0
expect "vectors stay f32" 0 '"dtype":"f32"' -- "$modelc" inspect "$work/q8.gguf" --json
expect "rows that are not whole blocks fall back, and are listed" 0 "rows of 192 are not whole blocks of 256" "bf16 -> q5_0" "bf16 -> q4_k" -- "$modelc" convert "$llama" "$tiny" "$work/q4k.gguf" --quantize q4_k
expect "the quantize block decides" 0 "bf16 -> q8_0: blk.{0..4}.ffn_gate.weight" -- "$modelc" convert "$llama" "$tiny" "$work/rules.gguf" --quantize rules
"$modelc" inspect "$work/rules.gguf" --all > "$work/rules.txt"
[ "$(grep -c q8_0 "$work/rules.txt")" -ge 15 ] && ! grep -q 'attn.*q8_0' "$work/rules.txt" && pass "of the mlp alone" || fail "of the mlp alone" "$(cat "$work/rules.txt")"
expect "a floor holds against the command line" 0 "never below f16" "llama.model:" -- "$modelc" convert "$llama" "$fixtures/llama-bf16" "$work/floor.gguf" --quantize q4_0
expect "q8_0 runs" 0 "" -- "$modelc" run "$llama" --checkpoint "$work/q8.gguf" --prompt "Once" -n 4
expect "back from q8_0, every value exactly" 0 "q8_0 -> f32 (exact)" -- "$modelc" convert "$llama" "$work/q8.gguf" "$work/q8.back"
expect "GGUF to GGUF: requantised, the rest as it is" 0 "q8_0 -> q4_0" -- "$modelc" convert "$llama" "$work/q8.gguf" "$work/q4.gguf" --quantize q4_0
expect "a dtype in safetensors" 0 "f32 -> bf16" -- "$modelc" convert "$llama" "$fixtures/llama-tiny" "$work/bf16" --quantize bf16
[ "$(python3 "$here/compare_tensors.py" types "$work/bf16")" = BF16 ] && pass "of every tensor" || fail "of every tensor"
python3 - "$tiny" "$work/inf" <<'PY'
import os, shutil, struct, sys
shutil.copytree(sys.argv[1], sys.argv[2])
path = os.path.join(sys.argv[2], "model.safetensors")
data = bytearray(open(path, "rb").read())
n = struct.unpack("<Q", data[:8])[0]
data[8 + n : 8 + n + 2] = b"\x80\x7f"                       # bf16 infinity
open(path, "wb").write(data)
PY
expect "blocks do not hold an infinity" 1 "no finite number" -- "$modelc" convert "$llama" "$work/inf" "$work/inf.gguf" --quantize q8_0

# ---- shards
expect "shards" 0 tensors -- "$modelc" convert "$llama" "$fixtures/llama-tiny" "$work/shards" --max-shard-size 20KB
ls "$work/shards" | grep -q 'model-00001-of-0000[2-9].safetensors' && [ -f "$work/shards/model.safetensors.index.json" ] && pass "with an index" || fail "with an index" "$(ls "$work/shards")"
expect "are a checkpoint" 0 "Llama:" -- "$modelc" check "$llama" --checkpoint "$work/shards"
expect "of the same tensors" 0 same -- same "$fixtures/llama-tiny" "$work/shards"
python3 - "$work/shards" <<'PY' && pass "and total_size is theirs" || fail "and total_size is theirs"
import glob, json, os, struct, sys
index = json.load(open(os.path.join(sys.argv[1], "model.safetensors.index.json")))
total = 0
for f in glob.glob(os.path.join(sys.argv[1], "*.safetensors")):
    n = struct.unpack("<Q", open(f, "rb").read(8))[0]
    total += os.path.getsize(f) - 8 - n
assert index["metadata"]["total_size"] == total and len(index["weight_map"]) > 20
PY

# ---- interrupted, or without space
mkdir "$work/full" "$work/stopped"
limited() { (trap '' XFSZ; ulimit -f 16; "$@"); }
expect "no space for a GGUF" 1 "cannot write" -- limited "$modelc" convert "$llama" "$tiny" "$work/full/out.gguf"
expect "no space for a folder" 1 "cannot write" -- limited "$modelc" convert "$llama" "$tiny" "$work/full/out"
nothing_left "nothing is left" "$work/full"
"$modelc" convert "$llama" "$tiny" "$work/stopped/out" --quantize f32 --max-shard-size 1KB > /dev/null 2>&1 &
job=$!
for _ in $(seq 2000); do [ -n "$(ls -A "$work/stopped")" ] && break; kill -0 $job 2>/dev/null || break; done
kill -TERM $job 2>/dev/null
wait $job
code=$?
if [ $code -eq 143 ]; then nothing_left "interrupted: nothing is left" "$work/stopped"
else [ $code -eq 0 ] && skip "interrupted: it was ready before" || fail "interrupted" "status $code"; fi

finish
