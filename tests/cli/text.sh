#!/usr/bin/env bash
# The model that ships in the repository writes what transformers writes: the same greedy tokens, token by token.
source "$(dirname "$0")/lib.sh"

prompt=$(grep -o '"prompt": *"[^"]*"' examples/tiny/expected_text.json | head -n 1 | sed 's/^"prompt": *"//; s/"$//')
tokens=$(tr -d ' \n' < examples/tiny/expected_text.json | grep -o '"greedy_ids":\[[0-9,]*\]' | head -n 1 | sed 's/.*\[//; s/\]//')
count=$(awk -F, '{print NF}' <<< "$tokens")
run=("$modelc" run examples/llama/llama.model --checkpoint examples/tiny)
expect "$count greedy tokens" 0 "$tokens" -- "${run[@]}" --prompt "$prompt" -n "$count" --show-tokens
expect "one thread gives the same" 0 "$tokens" -- "${run[@]}" --prompt "$prompt" -n "$count" --show-tokens --threads 1
expect "text goes on from the prompt" 0 "$prompt" "tokens/s" "generated" -- "${run[@]}" --prompt "$prompt" -n 8
a=$("${run[@]}" --prompt "$prompt" -n 20 --temperature 1 --seed 3 2>/dev/null)
b=$("${run[@]}" --prompt "$prompt" -n 20 --temperature 1 --seed 3 2>/dev/null)
c=$("${run[@]}" --prompt "$prompt" -n 20 --temperature 1 --seed 4 2>/dev/null)
[ -n "$a" ] && [ "$a" = "$b" ] && pass "a seed gives the same text again" || fail "a seed gives the same text again" "$a
$b"
[ "$a" != "$c" ] && pass "another seed gives another" || fail "another seed gives another" "$c"
expect "hooks print values by name" 0 "model.layers.0.self_attn.q " "model.layers.4.self_attn.q " -- "${run[@]}" --prompt "$prompt" -n 1 --trace 'model.layers.*.self_attn.q'
expect "hooks export values" 0 -- "${run[@]}" --prompt "$prompt" -n 1 --trace 'model.layers.0.**' --export "$work/values.safetensors"
expect "the export can be read" 0 "gate_proj" "o_proj" "[32, 6, 32]" -- "$modelc" inspect "$work/values.safetensors" --all
expect "tokens in" 0 "generated" -- "${run[@]}" --tokens 1,2,3 -n 2
finish
