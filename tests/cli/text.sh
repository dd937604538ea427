#!/usr/bin/env bash
# The model that ships in the repository writes what transformers writes: the same greedy tokens, token by token.
source "$(dirname "$0")/lib.sh"

prompt=$(grep -o '"prompt": *"[^"]*"' examples/tiny/expected_text.json | head -n 1 | sed 's/^"prompt": *"//; s/"$//')
tokens=$(tr -d ' \n' < examples/tiny/expected_text.json | grep -o '"greedy_ids":\[[0-9,]*\]' | head -n 1 | sed 's/.*\[//; s/\]//')
count=$(awk -F, '{print NF}' <<< "$tokens")
run=("$modelc" run examples/llama/llama.model --checkpoint examples/tiny)
expect "$count greedy tokens" 0 "$tokens" -- "${run[@]}" --mode exact --prompt "$prompt" -n "$count" --show-tokens
expect "one thread gives the same" 0 "$tokens" -- "${run[@]}" --mode exact --prompt "$prompt" -n "$count" --show-tokens --threads 1
expect "mode fast goes on from the prompt" 0 "$prompt" "generated" -- "${run[@]}" --mode fast --prompt "$prompt" -n 8
expect "which is the usual one to generate" 0 "$prompt" "mode fast" -- "${run[@]}" --prompt "$prompt" -n 8
expect "and exact where it is asked for" 0 "$prompt" "mode exact" -- "${run[@]}" --mode exact --prompt "$prompt" -n 8
expect "a mode that there is not" 2 "--mode" -- "${run[@]}" --mode quick --prompt "$prompt" -n 8
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
expect "a message through the template" 0 "$tokens" -- "${chat[@]}" --mode exact --chat "$prompt" -n "$count" --show-tokens
expect "a template that refuses" 1 "chat_template.jinja:1:" "the template refuses: no system" -- "${chat[@]}" --chat "$prompt" --system "Be brief."
whole=$("${run[@]}" --prompt "$prompt" -n 20 --json 2>/dev/null | grep -o '"text":"[^"]*"' | sed 's/^"text":"//; s/"$//')
stop=${whole:8:3}
stopped=$("${run[@]}" --prompt "$prompt" -n 20 --stop "$stop" --json 2>/dev/null | grep -o '"text":"[^"]*"' | sed 's/^"text":"//; s/"$//')
[ -n "$stop" ] && [ "$stopped" = "${whole%%"$stop"*}" ] && pass "a stop string ends the text before it" || fail "a stop string ends the text before it" "$stop
$whole
$stopped"
# The ids are those of the text: none that a stop string has, whole or in part.
ids() { grep -o '"tokens":\[[0-9,]*\]' | sed 's/.*\[//; s/\]//'; }
all_ids=$("${run[@]}" --prompt "$prompt" -n 20 --json 2>/dev/null | ids)
kept=$("${run[@]}" --prompt "$prompt" -n 20 --stop "$stop" --json 2>/dev/null | ids)
shown=$("${run[@]}" --prompt "$prompt" -n 20 --stop "$stop" --show-tokens 2>/dev/null)
again=$("${run[@]}" --prompt "$prompt" -n "$(awk -F, '{print NF}' <<< "$kept")" --json 2>/dev/null | grep -o '"text":"[^"]*"' | sed 's/^"text":"//; s/"$//')
case "$stopped" in "$again"*) is_text=1 ;; *) is_text=0 ;; esac
[ -n "$kept" ] && [ "$shown" = "$kept" ] && [ "$is_text" = 1 ] && [ "${all_ids#"$kept",}" != "$all_ids" ] &&
  pass "--show-tokens ends before the stop string too" || fail "--show-tokens ends before the stop string too" "$all_ids
$kept
$shown
$again"
# Several answers at once: each is what its seed gives alone.
draw=("${run[@]}" --prompt "$prompt" -n 20 --temperature 1 --show-tokens)
alone=$(for seed in 3 4 5; do "${draw[@]}" --seed "$seed" 2>/dev/null; done)
expect "three answers are those of three seeds" 0 -- diff <("${draw[@]}" --seed 3 --num-return-sequences 3 2>/dev/null) <(echo "$alone")
[ "$("${run[@]}" --prompt "$prompt" -n 5 --temperature 1 --num-return-sequences 2 --json 2>/dev/null | grep -o '"finish"' | wc -l)" = 2 ] &&
  pass "answers as JSON" || fail "answers as JSON" "not two"
expect "several answers without a temperature" 2 "the same answer each time" -- "${run[@]}" --prompt "$prompt" --num-return-sequences 2
never=$("${run[@]}" --prompt "$prompt" -n 20 --stop "no such text" --show-tokens 2>/dev/null)
[ "$never" = "$all_ids" ] && pass "a stop string that does not come takes nothing away" || fail "a stop string that does not come takes nothing away" "$never"

# ---- the reader of the output, and interrupts
"${run[@]}" --prompt "$prompt" -n 20 --ignore-eos > "$work/all" 2>/dev/null
(set -o pipefail; "${run[@]}" --prompt "$prompt" -n 50 --ignore-eos 2> "$work/noise" | head -c 10 > "$work/ten"; echo $? > "$work/status")
grep -v '^note:' "$work/noise" > "$work/said"
case "$(cat "$work/status")" in 0 | 141) sane=1 ;; *) sane=0 ;; esac # 0: all was written before the reader went
[ $sane = 1 ] && cmp -s "$work/ten" <(head -c 10 "$work/all") && ! grep -qi 'error\|pipe' "$work/said" &&
  pass "a reader that goes away" || fail "a reader that goes away" "$(cat "$work/status" "$work/said")"
# One that is gone before the first word: the status of the signal, and not a word.
mkfifo "$work/pipe"
(exec 3< "$work/pipe"; sleep 0.3) &
{ sleep 0.6; "${run[@]}" --prompt "$prompt" -n 8 2> "$work/noise"; echo $? > "$work/status"; } > "$work/pipe"
wait
[ "$(cat "$work/status")" = 141 ] && ! grep -qv '^note:' "$work/noise" && pass "no reader: 141, in silence" ||
  fail "no reader: 141, in silence" "$(cat "$work/status" "$work/noise")"
[ -w /dev/full ] && { "${run[@]}" --prompt "$prompt" -n 8 > /dev/full 2> "$work/noise"; echo $? > "$work/status"
  [ "$(cat "$work/status")" = 1 ] && grep -q 'the output cannot be written: No space left' "$work/noise" &&
    pass "a full disk is an error" || fail "a full disk is an error" "$(cat "$work/status" "$work/noise")"; }
# More tokens than could be made in that time: text is in the pipe at once, an interrupt keeps it and says how far it came.
mkdir "$work/long"
cp examples/tiny/* "$work/long/"
sed -i 's/"max_position_embeddings": *[0-9]*/"max_position_embeddings": 1000000/' "$work/long/config.json"
long=("$modelc" run examples/llama/llama.model --checkpoint "$work/long" --prompt "$prompt" --ignore-eos)
"${long[@]}" -n 1 > /dev/null 2>&1                          # compiled now
mkfifo "$work/tokens"
if command -v python3 > /dev/null; then
# A background job of a script ignores interrupts: python gives the default back.
python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
  "${long[@]}" -n 900000 > "$work/tokens" 2> "$work/noise" &
child=$!
exec 4< "$work/tokens"
timeout 60 head -c $((${#prompt} + 1)) <&4 > "$work/early"
kill -0 $child 2>/dev/null && [ -s "$work/early" ] && pass "text is there before the end" || fail "text is there before the end" "$(cat "$work/noise")"
(sleep 0.3; kill -INT $child; sleep 30; kill -KILL $child 2>/dev/null) > /dev/null 2>&1 &  # holds no pipe of this script open
guard=$!
cat <&4 > "$work/rest"
wait $child
status=$?
kill $guard 2>/dev/null
exec 4<&-
[ $status = 0 ] && [ "$(tail -c 1 "$work/rest" | od -An -c | tr -d ' ')" = '\n' ] && grep -q 'generated; stopped by an interrupt' "$work/noise" &&
  grep -q 'tokens/s' "$work/noise" && pass "an interrupt ends with text and figures" || fail "an interrupt ends with text and figures" "$status
$(cat "$work/noise")"
else skip "an interrupt: python3 is not installed"; fi
expect "tokens in" 0 "generated" -- "${run[@]}" --tokens 1,2,3 -n 2
# A model without state, whose calls know nothing of each other: the runs are fed the same tokens all the same.
cat > "$work/stateless.model" <<'M'
language 1
import nn.linear
config C { vocab, size: dim }
model Stateless(c: C) {
    context 16
    param table: [c.vocab, c.size]
    a: Linear(c.size, c.size)
    forward(ids: index(c.vocab)[tokens], at: Batch) -> logits: f32[outputs, c.vocab] {
        return linear(take(a(take(table, ids)), at.outputs), table)
    }
}
test "a token at a time" {
    config { vocab: 8 size: 4 }
    checkpoint random 1
    same prefill(6), prefill(2) + decode(4) within 1e-5
    same batch(3, 5), alone(3, 5) within 1e-5
}
M
expect "runs of a model without state" 0 "1 passed, 0 failed" -- "$modelc" test "$work/stateless.model"
finish
