#!/usr/bin/env bash
# modelc flatten: one text without imports and inheritance that checks, whose graph is the one of what it was made from, with
# nothing in it that nothing uses; formatted, and the same bytes when it is flattened again.
source "$(dirname "$0")/lib.sh"
here=$(dirname "$0")

# The graph without what messages say of it: places, texts, the formulas of sizes as they were written.
graph() {
  "$modelc" dump --stage graph "$1" --config "$2" 2>/dev/null |
    sed -E -e 's/ (source|shape|numbers|signature) "([^"\\]|\\.)*"//g; s/ from "[^"]*"(, "[^"]*")*//' \
      -e 's/( in)? @ "[^"]*":[0-9]+:[0-9]+//g; s/^( *set )"[^"]*":/\1/; s/^(class [^"]*)"([^"\\]|\\.)*"/\1/'
}

# flat NAME FILE [KEPT]: the text of FILE in $flat, which must be whole; KEPT: configs that may stand behind `extends`.
flat=$work/flat.model
flat() {
  local name=$1 file=$2 kept=${3:-} wrong
  cp "$(dirname "$file")"/*.comp "$work" 2>/dev/null                  # the text belongs beside the file, where its shaders are
  "$modelc" flatten "$file" > "$flat" 2> "$work/errors" || { fail "$name: flattens" "$(cat "$work/errors")"; return 1; }
  wrong=$(grep -nE '^import|^(module|model|config) .*extends' "$flat" | grep -vE "^[0-9]+:config .* extends (${kept:-nothing}) \{")
  [ -z "$wrong" ] && pass "$name: no import, no extends" || fail "$name: no import, no extends" "$wrong"
  wrong=$(python3 "$here/flatten/unused.py" "$flat" 2>&1)
  [ -z "$wrong" ] && pass "$name: everything is used" || fail "$name: everything is used" "$wrong"
  "$modelc" fmt --check "$flat" > "$work/out" 2>&1 && pass "$name: formatted" || fail "$name: formatted" "$(cat "$work/out")"
  "$modelc" flatten "$flat" > "$work/again.model" 2> "$work/errors"
  cmp -s "$flat" "$work/again.model" && pass "$name: the same again" ||
    fail "$name: the same again" "$(cat "$work/errors"; diff "$flat" "$work/again.model" | head -n 20)"
}

same_graph() {
  local name=$1 file=$2 config=$3 before after
  before=$(graph "$file" "$config")
  after=$(graph "$flat" "$config")
  if [ -n "$before" ] && [ "$before" = "$after" ]; then pass "$name"
  else fail "$name" "$("$modelc" check "$flat" --config "$config" 2>&1)
$(diff <(echo "$before") <(echo "$after") | head -n 20)"; fi
}

models=0
for model in examples/*/*.model; do
  models=$((models + 1))
  flat "$model" "$model" || continue
  configs=0
  for c in "$(dirname "$model")"/fixtures/*/config.json; do
    # A folder of several models has fixtures of each: those that this one refuses are another's.
    "$modelc" check "$model" --config "$c" > /dev/null 2>&1 || continue
    configs=$((configs + 1))
    same_graph "$model: the graph of $(basename "$(dirname "$c")")" "$model" "$c"
  done
  [ $configs -gt 0 ] || fail "$model has a configuration"
done
[ $models -ge 13 ] && pass "the examples were found" || fail "the examples were found" "$models models"

for model in "$here"/flatten/*.model; do
  name=$(basename "$model" .model)
  kept=$(sed -n 's|^// kept: ||p' "$model")
  flat "$name" "$model" "$kept" && same_graph "$name: the graph" "$model" "${model%.model}.json"
done

# A file without a model is a library: all that it declares stands in the text.
for library in stdlib/nn/*.model; do
  "$modelc" flatten "$library" > "$flat" 2> "$work/errors" && "$modelc" flatten "$flat" > "$work/again.model" 2>> "$work/errors" &&
    cmp -s "$flat" "$work/again.model" && "$modelc" check "$flat" > /dev/null 2>> "$work/errors" &&
    pass "$library: checks, the same again" || fail "$library: checks, the same again" "$(cat "$work/errors")"
done

# Paths in the text are relative to the file that it was made from: beside it the tests run.
cp -r "$here/flatten/beside" "$work/beside"
"$modelc" flatten "$work/beside/main/paths.model" > "$work/beside/main/flat.model"
expect "a shader of an imported file is found" 0 'glsl "../ops/twice.comp"' -- cat "$work/beside/main/flat.model"
expect "a test stands in the text and runs beside the file" 0 "1 passed" -- "$modelc" test "$work/beside/main/flat.model"
expect "a test of an imported file is not in it" 1 -- grep "of the library" "$work/beside/main/flat.model"

printf 'language 1\nmodel M() extends Nothing() {}\n' > "$work/wrong.model"
expect "a wrong model" 1 "Nothing" -- "$modelc" flatten "$work/wrong.model"
finish
