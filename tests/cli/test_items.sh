#!/usr/bin/env bash
# Nothing in a test block is read and then without effect: of each item a test with it and one without, and `modelc test` says
# something else. The item stands between « and »; behind ¦ what takes its place.
source "$(dirname "$0")/lib.sh"

tiny=$PWD/examples/llama/fixtures/llama-tiny
# A model that its own numbers decide: y = x · w, w from a file or random.
base='language 1
config C { n: dim  scale: float = 2.0 }
op doubled(x: [..., n]) -> [..., n] { reference x * 2 }
model M(c: C) {
    context 64
    emb: E(c.n)
    state cache: KVCache(1, c.n)
    forward(ids: index(c.n)[tokens], at: Batch) -> y: [tokens, c.n] {
        let x = emb(ids) * c.scale
        let k = x as [tokens, 1, c.n]
        cache.append(k, k, at)
        return attend(k, cache, at, mask: "causal", scale: 1.0) as [tokens, c.n]
    }
}
module E(n: dim) { param weight: [n, n]  forward(ids: index(n)[tokens]) { return take(weight, ids) } }'
printf '{"n": 8}\n' > "$work/c.json"
printf '{"n": 0}\n' > "$work/zero.json"

outcome() { printf '%s\n%s\n' "$base" "$1" > "$work/t.model"; "$modelc" test "$work/t.model" 2>&1 | sed -E 's/[0-9.]+ s\b//; s/t\.model:[0-9]+(:[0-9]+)?//g; /\^|^[0-9]* *\|/d'; }
both() {  # both ITEM TEST
  local with without
  with=$(outcome "$(sed -E 's/«([^¦»]*)(¦[^»]*)?»/\1/g' <<< "$2")")
  without=$(outcome "$(sed -E 's/«([^¦»]*)(¦([^»]*))?»/\3/g' <<< "$2")")
  if [ "$with" = "$without" ]; then fail "$1" "$with"; else pass "$1"; fi
}
both "config"                    'test "t" { «config "c.json"»  checkpoint random 3  same prefill(6), prefill(4) + decode(2) within 1e-5 }'
both "config's file"             'test "t" { config "«c¦zero».json"  checkpoint random 3  same prefill(6), prefill(4) + decode(2) within 1e-5 }'
both "with"                      'test "t" { config "zero.json" «with { n: 8 }»  checkpoint random 3  same prefill(6), prefill(4) + decode(2) within 1e-5 }'
both "a config of its own"       'test "t" { config { n: «8¦0» }  checkpoint random 3  same prefill(6), prefill(4) + decode(2) within 1e-5 }'
both "checkpoint"                'test "t" { config "c.json"  «checkpoint random 3»  same prefill(6), prefill(4) + decode(2) within 1e-5 }'
both "the runs"                  'test "t" { config "c.json"  checkpoint random 3  same prefill(6), prefill(«4¦5») + decode(2) within 1e-5 }'
both "+"                         'test "t" { config "c.json"  checkpoint random 3  same prefill(6), prefill(4) «+ decode(2)» within 1e-5 }'
both "several runs"              'test "t" { config "c.json"  checkpoint random 3  same prefill(6), prefill(6)«, prefill(5)» within 1e-5 }'
both "batch and alone"           'test "t" { config "c.json"  checkpoint random 3  same batch(3, 5), alone(3, «5¦4») within 1e-5 }'
both "same"                      'test "t" { config "c.json"  checkpoint random 3  «same prefill(6), prefill(4) + decode(2) within 1e-5» }'
both "within"                    'test "t" { config "c.json"  checkpoint random 3  same prefill(6), prefill(5) + decode(1) within «1e-3¦-1.0» }'
both "error"                     'test "t" { config "zero.json"  error «E0205¦E0204» }'
both "the text of an error"      'test "t" { config "zero.json"  error E0205 «"at most"» }'
both "op"                        'test "t" { op «doubled¦M»  input x = [1, 2]  same reference, cpu within 1e-6 }'
both "input"                     'test "t" { op doubled  «input x = [1, 2]»  same reference, cpu within -1.0 }'
both "an input's name"           'test "t" { op doubled  input «x¦z» = [1, 2]  same reference, cpu within 1e-6 }'
both "a test's name"             'test "«one¦two»" { config "zero.json"  error E0205 }'
# Of a published checkpoint: what is compared, and how closely.
cp examples/llama/llama.model "$work/llama.model"
for item in 'expect "expected.safetensors" within 1e-4' 'expect "expected.safetensors" within 0' 'expect "none.safetensors" within 1e-4'; do
  sed '/^test /,$d' examples/llama/llama.model > "$work/llama.model"
  sed "s|\"expected|\"$tiny/expected|" <<< "test \"t\" { config \"$tiny/config.json\"  checkpoint \"$tiny\"  $item }" >> "$work/llama.model"
  "$modelc" test "$work/llama.model" > "$work/said" 2>&1
  echo "$?" >> "$work/statuses"
done
[ "$(tr '\n' ' ' < "$work/statuses")" = "0 1 1 " ] && pass "expect: its file and its bound" || fail "expect: its file and its bound" "$(cat "$work/statuses" "$work/said")"
finish
