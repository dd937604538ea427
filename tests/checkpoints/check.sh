#!/usr/bin/env bash
# SmolLM2-135M-Instruct, as fetch.sh got it, against what transformers, tokenizers and jinja2 make of it:
#   PYTHON=python3 tests/checkpoints/check.sh FOLDER build/codegen/driver/modelc build
# The reference is computed once into FOLDER/reference (100 MB). PYTHON has torch, transformers, tokenizers, gguf.
folder=$(realpath "${1:?usage: $0 FOLDER MODELC BUILD_FOLDER}")
shift
source "$(dirname "$0")/../cli/lib.sh"

here=$(dirname "$0")
llama=$here/../../examples/llama/llama.model
gguf=$folder/SmolLM2-135M-Instruct.Q4_1.gguf
reference=$folder/reference
question="What is the capital of France?"
[ -s "$gguf" ] || { echo "$gguf is not there: fetch.sh gets it"; exit 1; }
[ -s "$reference/expected.safetensors" ] || "${PYTHON:-python3}" -B "$here/reference.py" "$gguf" "$reference" || exit 1

expect "check" 0 "303 weights" "134,515,008 parameters" "via deinterleave_rope_rows(9)" -- "$modelc" check "$llama" --checkpoint "$gguf"
expect "inspect" 0 "272 tensors" "q4_1 210 tensors" -- "$modelc" inspect "$gguf"
cut -f 1 "$reference/ids.txt" | "$build_folder/tests/runtime/tokenizer/tokenizer_lines" "$gguf" |
  sed 's/^.*"ids":\[\([0-9,]*\)\].*$/\1/' > "$work/ids"
if diff <(cut -f 2 "$reference/ids.txt") "$work/ids" > "$work/diff"; then pass "ids of $(wc -l < "$work/ids") texts"
else fail "ids" "$(cat "$work/diff")"; fi
run=("$modelc" run "$llama" --checkpoint "$gguf" -n 32)
expect "the answer is Paris" 0 "Paris" "stopped by the token that ends a text" -- "${run[@]}" --chat "$question"
expect "and in mode exact" 0 "Paris" -- "${run[@]}" --mode exact --chat "$question"
expect "its ids are those of transformers" 0 "$(cat "$reference/greedy.txt")" -- "${run[@]}" --mode exact --chat "$question" --show-tokens
expect "every position of 512 within a divergence of 1e-6" 0 "passed" -- \
  "$modelc" verify "$llama" --checkpoint "$gguf" --expected "$reference/expected.safetensors" --within-kl 1e-6
expect "fast: the mean divergence of 512 positions, and that of 99 %" 0 "passed" -- "$modelc" verify "$llama" --checkpoint "$gguf" \
  --expected "$reference/expected.safetensors" --mode fast --within 100 --within-mean-kl 1e-4 --within-kl-99 1e-3
finish
