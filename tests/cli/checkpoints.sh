#!/usr/bin/env bash
# Checkpoints stored otherwise than the model has them: GGUF, parts, sets, transforms; and test blocks over them.
source "$(dirname "$0")/lib.sh"

llama=$PWD/examples/llama/llama.model
qwen2=$PWD/examples/qwen2/qwen2.model
fixtures=$PWD/examples/llama/fixtures
gguf=$fixtures/llama-gguf/llama-tiny.gguf
copy() { rm -rf "$work/$1"; cp -r "$2" "$work/$1"; chmod -R u+w "$work/$1"; }

# ---- what only a load can tell, and bytes that nothing covers
expect "an alias beside its own tensor is left to the load" 0 "left to the load" -- "$modelc" check "$llama" --checkpoint "$fixtures/llama-tied-copy"
copy trailing "$fixtures/llama-tiny"
printf 'more' >> "$work/trailing/model.safetensors"
expect "trailing bytes are refused" 1 "--allow-trailing-bytes" -- "$modelc" check "$llama" --checkpoint "$work/trailing"
expect "and accepted when asked for" 0 "Llama:" -- "$modelc" check "$llama" --checkpoint "$work/trailing" --allow-trailing-bytes
expect "inspect too" 0 "q_proj" -- "$modelc" inspect "$work/trailing" --allow-trailing-bytes
expect "run hands it on" 0 "" -- "$modelc" run "$llama" --checkpoint "$work/trailing" --tokens 1 -n 2 --allow-trailing-bytes

# ---- GGUF
expect "a GGUF file, its configuration from its metadata" 0 "Llama:" "via deinterleave_rope_rows(4)" -- "$modelc" check "$llama" --checkpoint "$gguf"
expect "Qwen2, whose rows stand as they are" 0 "Qwen2:" -- "$modelc" check "$qwen2" --checkpoint examples/qwen2/fixtures/qwen2-gguf/qwen2-tiny.gguf
expect "a GGUF file through generated code" 0 passed -- "$modelc" verify "$llama" --checkpoint "$gguf" --expected "$fixtures/llama-tiny/expected.safetensors"
sed 's/attn_q = q_proj via deinterleave_rope_rows(heads)/attn_q = q_proj/' "$llama" > "$work/straight.model"
expect "without the transform the logits differ" 1 FAILED -- "$modelc" verify "$work/straight.model" --checkpoint "$gguf" --expected "$fixtures/llama-tiny/expected.safetensors"
expect "another architecture" 1 "error[E0408]" "qwen2" -- "$modelc" check "$llama" --checkpoint examples/qwen2/fixtures/qwen2-gguf/qwen2-tiny.gguf
expect "also beside a config.json" 1 "error[E0408]" -- "$modelc" check "$llama" --config "$fixtures/llama-tiny/config.json" --checkpoint examples/qwen2/fixtures/qwen2-gguf/qwen2-tiny.gguf
grep -v 'rope_theta  *= arch' "$llama" > "$work/unread.model"
expect "a key of the metadata that no line reads" 1 "error[E0406]" "llama.rope.freq_base" -- "$modelc" check "$work/unread.model" --checkpoint "$gguf"

# ---- parts
expect "FP8 codes and scales" 0 passed -- "$modelc" verify "$llama" --checkpoint "$fixtures/llama-fp8" --expected "$fixtures/llama-fp8/expected.safetensors"
copy noscale "$fixtures/llama-fp8"
sed -i 's/layers\.1\.mlp\.up_proj\.weight_scale_inv/layers.1.mlp.up_proj.weight_scale_xyz/' "$work/noscale/model.safetensors"
expect "codes without their scales" 1 "error[E0404]" "model.layers.1.mlp.up_proj.weight" "weight_scale_inv" -- "$modelc" check "$llama" --checkpoint "$work/noscale"
copy blocks "$fixtures/llama-fp8"
sed -i 's/^ *16,$/      8,/' "$work/blocks/config.json"
expect "blocks of another size" 1 "error[E0403]" "fp8_block(8, 12)" -- "$modelc" check "$llama" --checkpoint "$work/blocks"
copy plain "$fixtures/llama-fp8"
python3 - "$work/plain/config.json" <<'PY'
import json, sys
c = json.load(open(sys.argv[1]))
del c["quantization_config"]
json.dump(c, open(sys.argv[1], "w"))
PY
expect "codes without an encoding" 1 "error[E0402]" "f8_e4m3" "scales" -- "$modelc" check "$llama" --checkpoint "$work/plain"

# ---- sets, transforms, and tests over random weights
cp "$llama" "$work/llama.model"
cat > "$work/derived.model" <<'MODEL'
language 1
import llama
config C extends LlamaConfig { }
model Derived(c: C) extends Llama(c) {
    checkpoint safetensors {
        one_of { short { emb = model.embed_tokens }  long { embeddings.{rest*} = model.embed_tokens.{rest*} } }
        model.layers.{i}.self_attn.qkv.weight = [model.layers.{i}.self_attn.q_proj.weight, model.layers.{i}.self_attn.k_proj.weight,
            model.layers.{i}.self_attn.v_proj.weight] via split(0)
        out.weight = lm_head.weight via transpose(0, 1)
        norm.{i} = model.layers.{i}.input_layernorm.weight via offset(-1) when i >= 1
    }
}
test "random weights, written and read through the block" {
    config     "config.json"
    checkpoint random 7
    same       prefill(9), prefill(4) + decode(5) within 1e-5
    same       batch(3, 5), alone(3, 5) within 1e-5
}
test "the sets are named" {
    config     "config.json"
    checkpoint "tiny"
    error      E0405 "`short` lacks emb.weight"
}
test "a value that is replaced" {
    config "config.json" with { hidden_size: none }
    error  E0204 "hidden_size"
}
MODEL
cp "$fixtures/llama-tiny/config.json" "$work/config.json"
cp -r "$fixtures/llama-tiny" "$work/tiny"
expect "a derived model's block, in a test over random weights" 0 "3 passed, 0 failed" -- "$modelc" test "$work/derived.model"
cat > "$work/nokernel.model" <<'MODEL'
language 1
config C { vocab_size, size: dim }
model M(c: C) {
    param table: [c.vocab_size, c.size]
    forward(ids: index(c.vocab_size)[tokens], at: Batch) -> logits: f32[outputs, c.vocab_size] {
        return einsum("ts,vs->tv", take(take(table, ids), at.outputs), table)
    }
}
test "by the reference alone" { config { vocab_size: 8  size: 4 }  checkpoint random 3  same prefill(4), prefill(1) + decode(3) within 1e-6 }
test "asks for nothing"       { config { vocab_size: 8  size: 4 }  checkpoint random 3 }
test "another error"          { config { vocab_size: 8 }  error E0201 "size" }
MODEL
expect "what the generated code does not carry out is said, and what fails is counted" 1 "ok      by the reference alone" \
  "in the reference evaluator alone; generated code: " "einsum" "it asks for nothing" "expected error E0201" "1 passed, 2 failed" -- "$modelc" test "$work/nokernel.model"
finish
