#!/usr/bin/env bash
# modelc pack: the same bits from a pack as from the checkpoint, for stored rows, permuted ones and aliases; stale and
# damaged packs are said; two programs at once.
source "$(dirname "$0")/lib.sh"
llama=examples/llama/llama.model
values() { # FOLDER_OR_FILE NAME [OPTION…]: every value of a run, as bytes
  local checkpoint=$1 name=$2
  shift 2
  "$modelc" run $llama --checkpoint "$checkpoint" --tokens 1,2,3,4,5 -n 3 --show-tokens --ignore-eos --trace '**' \
    --export "$work/$name.safetensors" "$@" > "$work/$name.out" 2> "$work/$name.err"
}
for fixture in llama-tied llama-bf16 llama-gguf llama-fp8 llama-tied-copy; do
  folder=$work/$fixture
  cp -r "examples/llama/fixtures/$fixture" "$folder"
  expect "$fixture: packed" 0 "llama.cpu-rows.pack written" -- "$modelc" pack $llama "$folder"
  expect "$fixture: up to date" 0 "llama.cpu-rows.pack is up to date" -- "$modelc" pack $llama "$folder"
  values "$folder" with && values "$folder" without --no-pack
  if [ $? -eq 0 ] && [ -s "$work/with.safetensors" ] && cmp -s "$work/with.safetensors" "$work/without.safetensors" &&
     diff <(grep ^note: "$work/with.err") <(grep ^note: "$work/without.err") > /dev/null; then pass "$fixture: the same values and notes"
  else fail "$fixture: the same values and notes" "$(cat "$work/with.err" "$work/without.err")"; fi
done
folder=$work/llama-bf16
pack=$folder/llama.cpu-rows.pack
touch "$folder"/*.safetensors
expect "a touched file is said" 0 "out of date" "written to, or copied, since" "modelc pack" -- "$modelc" run $llama --checkpoint "$folder" --tokens 1 -n 1 --show-tokens
expect "and the pack written again" 0 "it is written again" "written in" -- "$modelc" pack $llama "$folder"
truncate -s -3 "$pack"
expect "a pack that is cut short" 0 "cut short" -- "$modelc" run $llama --checkpoint "$folder" --tokens 1 -n 1 --show-tokens
expect "with hashes of every byte" 0 "it is written again" -- "$modelc" pack $llama "$folder" --full-hash
touch "$folder"/*.safetensors
expect "a time alone is then no matter" 0 "up to date" -- "$modelc" pack $llama "$folder"
cp "$work/llama-tied/llama.cpu-rows.pack" "$pack"
expect "another checkpoint's pack" 0 "out of date" "it is written again" -- "$modelc" pack $llama "$folder"
expect "as JSON" 0 '"written":false' -- "$modelc" pack $llama "$folder" --json
rm "$pack"
for i in 1 2; do "$modelc" pack $llama "$folder" > "$work/at-once.$i" 2>&1 & done
wait
expect "two at once" 0 "up to date" -- "$modelc" pack $llama "$folder"
[ "$(ls -A "$folder" | grep -c pack)" -eq 1 ] && pass "and nothing temporary is left" || fail "and nothing temporary is left" "$(ls -A "$folder")"
expect "no checkpoint" 2 "2 required" -- "$modelc" pack $llama
finish
