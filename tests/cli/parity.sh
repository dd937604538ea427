#!/usr/bin/env bash
# Every fixture: logits at every position and each layer's attention and MLP equal transformers' within 1e-4, through the
# plan and the kernels that `run` uses; whole, in chunks, and on every instruction set that this machine has.
source "$(dirname "$0")/lib.sh"

for file in examples/*/*.model; do
  model=$(basename "$file" .model)
  for folder in "$(dirname "$file")/fixtures"/*/; do
    # Two models share a folder: its fixtures say whose they are.
    case "$model/$(basename "$folder")" in bert/sentence-*|sentence/bert-*) continue ;; esac
    [ -f "$folder/expected.safetensors" ] && [ -f "$folder/config.json" ] || continue
    name=$(basename "$folder")
    expect "$name" 0 passed -- "$modelc" verify "$file" --checkpoint "$folder" --expected "$folder/expected.safetensors" --within 1e-4
  done
  expect "test blocks of $model.model" 0 "0 failed" -- "$modelc" test "$file"
done
# What an entry leaves in the states is what the tokens behind it read.
sed "s|\"fixtures/|\"$PWD/examples/whisper/fixtures/|" examples/whisper/whisper.model > "$work/whisper.model"
sed 's/encode + prefill(8)/prefill(8)/' "$work/whisper.model" > "$work/without.model"
expect "a run without the entry that it needs" 1 "nothing has been set in the state" -- "$modelc" test "$work/without.model"
sed 's/encode + prefill(3)/remember + prefill(3)/' "$work/whisper.model" > "$work/entry.model"
expect "an entry that is none" 1 '`remember` is no entry of the model' -- "$modelc" test "$work/entry.model"
sets=$("$modelc" --version | sed -n 's/^instruction sets of this machine: //p')
for isa in portable avx2 avx512 avx512vnni; do
  command=("$modelc" verify examples/llama/llama.model --checkpoint examples/llama/fixtures/llama-odd
           --expected examples/llama/fixtures/llama-odd/expected.safetensors --isa "$isa")
  case ", $sets," in
    *", $isa,"*) expect "llama-odd on $isa" 0 passed -- "${command[@]}" ;;
    *) expect "llama-odd on $isa, which this machine has not" 1 "instruction set $isa is not to be had here" -- "${command[@]}" ;;
  esac
done
expect "llama-batch in chunks of 5" 0 passed -- "$modelc" verify examples/llama/llama.model --checkpoint examples/llama/fixtures/llama-batch \
  --expected examples/llama/fixtures/llama-batch/expected.safetensors --chunk 5
expect "the tiny model" 0 passed -- "$modelc" verify examples/llama/llama.model --checkpoint examples/tiny --expected examples/tiny/expected.safetensors
# The same check must fail when something is wrong: another checkpoint's weights, another theta.
expect "a wrong checkpoint is found" 1 FAILED "first stage that differs: model.embed_tokens" -- "$modelc" verify examples/llama/llama.model \
  --checkpoint examples/llama/fixtures/llama-theta-both --expected examples/llama/fixtures/llama-tiny/expected.safetensors
expect "a wrong theta is found" 1 FAILED "first stage that differs: model.layers.0.self_attn" -- "$modelc" verify examples/llama/llama.model \
  --checkpoint examples/llama/fixtures/llama-tiny --set rope_theta=500000.0 --expected examples/llama/fixtures/llama-tiny/expected.safetensors
finish
