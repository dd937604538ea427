#!/usr/bin/env bash
# modelc flatten: one text without imports and inheritance that checks, and whose graph is the one of what it was made from.
source "$(dirname "$0")/lib.sh"

# The graph without the places, which are other ones.
graph() { "$modelc" dump --stage graph "$1" --config "$2" 2>/dev/null | sed -E 's/ source "([^"\\]|\\.)*"//; s/ @ "[^"]*":[0-9]+:[0-9]+//; s/(module [A-Za-z0-9]+ from )"[^"]*"/\1/'; }

same_graph() {
  local name=$1 file=$2 config=$3 flat=$work/flat.model before after
  "$modelc" flatten "$file" > "$flat" 2> "$work/errors" || { fail "$name" "$(cat "$work/errors")"; return; }
  before=$(graph "$file" "$config")
  after=$(graph "$flat" "$config")
  if [ -n "$before" ] && [ "$before" = "$after" ] && ! grep -qE '^import|^(config|module|model) .*extends' "$flat"; then pass "$name"
  else fail "$name" "$("$modelc" check "$flat" --config "$config" 2>&1)
$(diff <(echo "$before") <(echo "$after") | head -n 20)"; fi
}

for model in llama qwen2; do
  for c in examples/$model/fixtures/*/config.json; do same_graph "$c" examples/$model/$model.model "$c"; done
done
same_graph "configs and modules that extend others, names that two files have" tests/cli/flatten/model.model tests/cli/flatten/config.json
expect "the same again" 0 "config Config {" -- "$modelc" flatten "$work/flat.model"
"$modelc" fmt --check "$work/flat.model" > /dev/null && pass "the text is formatted" || fail "the text is formatted"
printf 'language 1\nmodel M() extends Nothing() {}\n' > "$work/wrong.model"
expect "a wrong model" 1 "Nothing" -- "$modelc" flatten "$work/wrong.model"
finish
