#!/usr/bin/env bash
# modelc fmt: what it writes says the same, a second run changes nothing, --check names files, mistakes leave a file as it is.
source "$(dirname "$0")/lib.sh"

changed=0
same=1
for f in examples/*/*.model stdlib/nn/*.model tests/frontend/syntax/cases/models/*.model; do
  cp "$f" "$work/one.model"
  before=$("$modelc" dump --stage tree "$work/one.model")
  "$modelc" fmt --columns 90 "$work/one.model" || same=0
  cmp -s "$f" "$work/one.model" || changed=$((changed + 1))
  [ "$before" = "$("$modelc" dump --stage tree "$work/one.model")" ] || { same=0; echo "$f"; }
  "$modelc" fmt --check --columns 90 "$work/one.model" || same=0
done
[ $same = 1 ] && pass "formatted files say the same, and stay as they are" || fail "formatted files say the same, and stay as they are"
[ $changed -gt 10 ] && pass "there was something to do" || fail "there was something to do" "$changed files"

printf 'language 1\nfn f(x)=x\n' > "$work/loose.model"
printf 'language 1\nfn f(x) = x\n' > "$work/neat.model"
cp "$work/loose.model" "$work/copy.model"
expect "--check names what would change, and writes nothing" 1 "$work/loose.model" -- "$modelc" fmt --check "$work/neat.model" "$work/loose.model"
cmp -s "$work/loose.model" "$work/copy.model" && pass "--check writes nothing" || fail "--check writes nothing"
expect "several files" 0 -- "$modelc" fmt "$work/neat.model" "$work/loose.model"
cmp -s "$work/loose.model" "$work/neat.model" && pass "the file is formatted" || fail "the file is formatted" "$(cat "$work/loose.model")"
printf 'language 1\nfn f(x)=\n' > "$work/broken.model"
cp "$work/broken.model" "$work/copy.model"
expect "a file with mistakes" 1 "E0110" -- "$modelc" fmt "$work/broken.model"
cmp -s "$work/broken.model" "$work/copy.model" && pass "it stays as it is" || fail "it stays as it is"
expect "no file" 1 "E0" "nowhere.model" -- "$modelc" fmt "$work/nowhere.model"
# What the repository holds is in its usual layout.
mapfile -t all < <(find examples stdlib tests -name '*.model' -not -path '*/build*')
[ ${#all[@]} -gt 30 ] && pass "there are model files" || fail "there are model files"
expect "every model file of the repository" 0 -- "$modelc" fmt --check "${all[@]}"
finish
