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
# The chat template decides what the prompt is; stop strings are not shown.
mkdir "$work/chat"
cp examples/tiny/* "$work/chat/"
printf '%s' "{{ bos_token }}{{ messages[-1].content }}{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" > "$work/chat/chat_template.jinja"
chat=("$modelc" run examples/llama/llama.model --checkpoint "$work/chat")
expect "a message through the template" 0 "$tokens" -- "${chat[@]}" --chat "$prompt" -n "$count" --show-tokens
expect "a template that refuses" 1 "chat_template.jinja:1:" "the template refuses: no system" -- "${chat[@]}" --chat "$prompt" --system "Be brief."
whole=$("${run[@]}" --prompt "$prompt" -n 20 --json 2>/dev/null | grep -o '"text":"[^"]*"' | sed 's/^"text":"//; s/"$//')
stop=${whole:8:3}
stopped=$("${run[@]}" --prompt "$prompt" -n 20 --stop "$stop" --json 2>/dev/null | grep -o '"text":"[^"]*"' | sed 's/^"text":"//; s/"$//')
[ -n "$stop" ] && [ "$stopped" = "${whole%%"$stop"*}" ] && pass "a stop string ends the text before it" || fail "a stop string ends the text before it" "$stop
$whole
$stopped"
expect "tokens in" 0 "generated" -- "${run[@]}" --tokens 1,2,3 -n 2
finish
