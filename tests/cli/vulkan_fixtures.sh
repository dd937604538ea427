#!/usr/bin/env bash
# Every fixture on the Vulkan device, within 1e-4 of the reference; and, with states of every kind, split between it and the CPU, with the
# test blocks that take prompts in pieces, one token at a time and in batches. Without a driver: SKIPPED.
source "$(dirname "$0")/lib.sh"

expect "devices" 0 cpu -- "$modelc" devices
if ! "$modelc" devices 2>&1 | grep -q '^vulkan:0'; then
  skip "SKIPPED: no Vulkan device"
  finish
  exit
fi
for file in examples/*/*.model; do
  model=$(basename "$file" .model)
  for folder in "$(dirname "$file")/fixtures"/*/; do
    # Two models share a folder: its fixtures say whose they are.
    case "$model/$(basename "$folder")" in bert/sentence-*|sentence/bert-*) continue ;; esac
    [ -f "$folder/expected.safetensors" ] && [ -f "$folder/config.json" ] || continue
    expect "$(basename "$folder") on Vulkan" 0 passed "on Vulkan" -- "$modelc" verify "$file" --checkpoint "$folder" \
      --expected "$folder/expected.safetensors" --within 1e-4 --backend vulkan
  done
done
# On one device alone, in chunks, and without what a driver may lack, for the shaders that go over a state; then with one part elsewhere.
while read -r -u 3 model fixture part; do
  folder=examples/$model/fixtures/$fixture
  on() { env "$1" "$modelc" verify examples/$model/$model.model --checkpoint $folder --expected $folder/expected.safetensors --within 1e-4 "${@:2}"; }
  expect "$fixture in chunks of 5" 0 passed "on Vulkan" -- on _= --chunk 5 --backend vulkan
  for without in subgroup subgroup,float16,int8,int16,storage16,storage8,float64,int64; do
    expect "$fixture without $without" 0 passed "on Vulkan" -- on MODELC_VULKAN_WITHOUT=$without --chunk 5 --backend vulkan
  done
  expect "$fixture with $part on the CPU" 0 passed "transfers between them" -- on _= --chunk 5 --device "$part=cpu,vulkan:0"
  expect "$fixture with the rest on the CPU" 0 passed "transfers between them" -- on _= --device "$part=vulkan:0,cpu"
  mkdir -p "$work/$model"
  ln -s "$PWD/examples/$model/fixtures" "$work/$model/fixtures"
  sed "s/^    policy {/    place { $part: cpu(0)    \"**\": gpu(0) }\n&/" examples/$model/$model.model > "$work/$model/$model.model"
  "$modelc" test "$work/$model/$model.model" > "$work/log" 2>&1
  if grep -q "passed, 0 failed" "$work/log" && ! grep -q skipped "$work/log"; then pass "tests of $model with $part on the CPU"
  else fail "tests of $model with $part on the CPU" "$(cat "$work/log")"; fi
done 3<<'CASES'
mamba2 mamba2-tiny backbone.layers.1
qwen3_next qwen3-next-dense model.layers.1
deepseek_v3 deepseek-v3-dense model.layers.1
whisper whisper-tiny-random model.encoder
CASES
finish
