#!/usr/bin/env bash
# Ten common mistakes: the messages in frontend/README.md are what modelc prints.
# With UPDATE=1 the README is written anew; read the difference.
source "$(dirname "$0")/lib.sh"
small=tests/cli/messages
readme=frontend/README.md
begin='<!-- ten mistakes: tests/cli/messages.sh writes what follows -->'
end='<!-- end of the ten mistakes -->'
: > "$work/section"
number=0

# mistake TITLE CODE ELSEWHERE EDIT [CONFIG_EDIT]: sed expressions on the model and its configuration.
mistake() {
  local title=$1 code=$2 elsewhere=$3
  number=$((number + 1))
  sed -E "$4" "$small/small.model" > "$work/small.model"
  sed -E "${5:-}" "$small/config.json" > "$work/config.json"
  if cmp -s "$small/small.model" "$work/small.model" && cmp -s "$small/config.json" "$work/config.json"; then fail "$title: the edit changes nothing"; return; fi
  local said
  said=$(NO_COLOR=1 "$modelc" check "$work/small.model" --config "$work/config.json" 2>&1)
  { printf '### %d. %s\n%s\n\n```text\n%s\n```\n\n' "$number" "$title" "$elsewhere" "$said"; } >> "$work/section"
  local errors
  errors=$(grep -c '^error\[' <<< "$said")
  if [ "$errors" -eq 1 ] && grep -q "^error\[$code\]" <<< "$said"; then pass "$title: one message, $code"
  else fail "$title" "$said"; fi
  # The same for programs: one object, one line.
  if ! command -v python3 > /dev/null; then skip "$title: as JSON"; return; fi
  "$modelc" check "$work/small.model" --config "$work/config.json" --json > "$work/json" 2> /dev/null
  if python3 -c '
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
assert [l["code"] for l in lines if l["severity"] == "error"] == [sys.argv[2]], lines
' "$work/json" "$code" 2> "$work/said"; then pass "$title: as JSON"; else fail "$title: as JSON" "$(cat "$work/said" "$work/json")"; fi
}

mistake "A misspelt field" E0315 "rustc: \`no field \`siz\` on type …\`, help: a field with a similar name exists. Ours names the candidate and where the config is declared." \
  's/norm:   RMSNorm\(c\.size/norm:   RMSNorm(c.siz/'
mistake "A misspelt module" E0301 "rustc: \`cannot find struct … in this scope\`, with the nearest name. The same." 's/q: Linear/q: Liner/'
mistake "A misspelt named argument" E0313 "Carbon: no matching parameter, and a note at the declaration. Ours marks the word and labels the declaration." 's/has_bias: true/bias: true/'
mistake "Sizes that do not fit" E0350 "rustc's \`mismatched types\` labels both sides with their types; ours adds what the sizes are made of, and where each number is from." \
  's/return o\(y as \[tokens, c\.heads \* d\]\)/return q(y as [tokens, c.heads * d]) + k(y)/'
mistake "A bracket that is not closed" E0111 "rustc: \`this file contains an unclosed delimiter\`, both places labelled. The same." 's/eps: c\.eps\)/eps: c.eps/'
mistake "A word of the language as a name" E0115 "rustc: \`expected identifier, found keyword\`." 's/let d = /let in = /'
mistake "A value that an operation does not know" E0349 "No like of it in rustc, where it would be an enum; ours treats a string of a closed set as one." 's/"causal"/"casual"/'
mistake "A division that does not come out even" E0308 "rustc's const evaluation shows the expression; ours the values and their origins too." 's/@@//' 's/"heads": 4/"heads": 5/'
mistake "A key that nothing reads" E0201 "serde's \`unknown field\`, with the nearest names." 's/@@//' 's/"vocab": 32,/"vocab": 32, "rope_theta": 1e4,/'
mistake "A key that is missing" E0204 "serde's \`missing field\`, with the declaration that wants it." 's/@@//' 's/"layers": 2/"layer": 2/; s/"layer": 2/"eps": 1e-5/'

awk -v begin="$begin" -v end="$end" -v section="$work/section" '
  $0 == end { inside = 0 }
  !inside { print }
  $0 == begin { inside = 1; print ""; while ((getline line < section) > 0) print line }' "$readme" > "$work/README.md"
if [ "${UPDATE:-}" = 1 ]; then cp "$work/README.md" "$readme"; fi
if cmp -s "$work/README.md" "$readme"; then pass "frontend/README.md shows what is printed"
else fail "frontend/README.md shows what is printed: UPDATE=1 writes it anew" "$(diff "$readme" "$work/README.md" | head -n 40)"; fi
[[ "$(cat grammar/README.md)" == *"$(cat $small/small.model)"* ]] && pass "grammar/README.md begins with the model of this test" || fail "grammar/README.md begins with the model of this test"
expect "which is right as it stands" 0 "Small: 12 modules" -- "$modelc" check "$small/small.model" --config "$small/config.json"
finish
