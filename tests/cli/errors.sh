#!/usr/bin/env bash
# Mistakes as a new user makes them: each message names the thing, the place and the way out, and nothing is left behind.
source "$(dirname "$0")/lib.sh"

llama=$PWD/examples/llama/llama.model
tiny=$PWD/examples/llama/fixtures/llama-tiny
sharded=$PWD/examples/llama/fixtures/llama-sharded
copy() { rm -rf "$work/$1"; cp -r "$2" "$work/$1"; chmod -R u+w "$work/$1"; }

# ---- weights
copy misspelt "$tiny"
sed -i 's/model\.layers\.1\.mlp\.up_proj\.weight/model.layers.1.mlp.upprojx.weight/' "$work/misspelt/model.safetensors"
for command in check run; do
  extra=(); [ $command = run ] && extra=(--tokens 1)
  expect "$command: a misspelt weight" 1 "model.layers.1.mlp.up_proj.weight" "model.layers.1.mlp.upprojx.weight" "up_proj" -- \
    "$modelc" $command "$llama" --checkpoint "$work/misspelt" ${extra[@]+"${extra[@]}"}
done
expect "missing and unexpected, each by its code" 1 "error[E0321]" "error[E0401]" -- "$modelc" check "$llama" --checkpoint "$work/misspelt"
copy expert "$PWD/examples/qwen3_moe/fixtures/qwen3-moe-each"
sed -i 's/layers\.2\.mlp\.experts\.2\.up_proj/layers.2.mlp.experts.7.up_proj/' "$work/expert/model.safetensors"
expect "an expert that is missing, and one too many" 1 "error[E0405]" '`each` lacks model.layers.2.mlp.experts.2.up_proj.weight' \
  "error[E0401]: model.layers.2.mlp.experts.7.up_proj.weight" -- "$modelc" check examples/qwen3_moe/qwen3_moe.model --checkpoint "$work/expert"
# A library module of one's own, which declares the type of its weight.
mkdir -p "$work/typed/nn"
cp "$llama" "$work/typed/"
sed 's/param weight: \[count, size\]/param weight: f32[count, size]/' stdlib/nn/embedding.model > "$work/typed/nn/embedding.model"
expect "a wrong type" 1 "error[E0402]" "bf16" "f32" -- "$modelc" check "$work/typed/llama.model" --checkpoint examples/llama/fixtures/llama-bf16
expect "a cast that is asked for" 0 "Llama:" -- "$modelc" check "$work/typed/llama.model" --checkpoint examples/llama/fixtures/llama-bf16 --auto-cast
cat > "$work/nokernel.model" <<'MODEL'
language 1
config C { vocab_size, size: dim }
model M(c: C) {
    param table: [c.vocab_size, c.size]
    forward(ids: index(c.vocab_size)[tokens], at: Batch) -> logits: f32[outputs, c.size] {
        return einsum("ij,ij->ij", take(take(table, ids), at.outputs), take(take(table, ids), at.outputs))
    }
}
MODEL
echo '{"vocab_size": 8, "size": 4}' > "$work/nokernel.json"
expect "an operation without a kernel" 1 "error[E0501]" "einsum" "nokernel.model:6" -- "$modelc" build "$work/nokernel.model" --config "$work/nokernel.json" -o "$work/nk"
# A matrix of latents is a weight, and read as rows.
sed 's/up: kv_b_proj.weight/up: kv_b_proj.weight * 1.5/' examples/deepseek_v3/deepseek_v3.model > "$work/computed.model"
expect "latents whose matrix is computed" 1 "error[E0501]" "operation \`attend_latent\`" "\`up\` is computed, and not a weight" "computed.model:" -- \
  "$modelc" build "$work/computed.model" --config examples/deepseek_v3/fixtures/deepseek-v3-dense/config.json -o "$work/nk"
sed 's/let y = attend_latent/let extra = sum(sum(kv_b_proj.weight))\n        let y = extra * 0 + attend_latent/' examples/deepseek_v3/deepseek_v3.model > "$work/both.model"
expect "latents whose matrix is read as numbers too" 1 "error[E0501]" "weight \`kv_b_proj.weight\`" "is a matrix here and is read as numbers elsewhere" "both.model:" -- \
  "$modelc" build "$work/both.model" --config examples/deepseek_v3/fixtures/deepseek-v3-dense/config.json -o "$work/nk"
# What stands in another file is marked where this one calls it: a text that is expanded here, and a module's own function.
cat > "$work/mixing.model" <<'MODEL'
language 1
fn mixed(x, w) = einsum("ij,jk->ik", x, w)
module Mix(n: dim) {
    param w: [n, n]
    forward(x: [tokens, n]) -> [tokens, n] { return mixed(x, w) + x }
}
MODEL
cat > "$work/uses.model" <<'MODEL'
language 1
import mixing
config C { n: dim }
model Uses(c: C) {
    context 8
    param table: [8, c.n]
    mix: Mix(c.n)
    forward(ids: index(8)[tokens], at: Batch) -> y: [outputs, c.n] {
        let h = mix(take(table, ids)) * 2
        return take(h, at.outputs)
    }
}
MODEL
echo '{"n": 4}' > "$work/uses.json"
expect "an operation in a text that is expanded" 1 "error[E0501]" "--> uses.model:9:17" "9 |         let h = mix(" "--> mixing.model:" "the operation stands here" -- \
  "$modelc" build "$work/uses.model" --config "$work/uses.json" -o "$work/uses"
copy shape "$tiny"
sed -i 's/"hidden_size": 32/"hidden_size": 40/' "$work/shape/config.json"
expect "a wrong shape, with formula, value and origin" 1 "error[E0312]" "hidden_size" "40" "config.json" "llama.model:" -- \
  "$modelc" check "$llama" --checkpoint "$work/shape"
copy shard "$sharded"
rm "$work/shard/model-00002-of-00002.safetensors"
expect "a missing shard" 1 "model-00002-of-00002.safetensors" -- "$modelc" check "$llama" --checkpoint "$work/shard"
copy untied "$PWD/examples/llama/fixtures/llama-tied"
sed -i 's/"tie_word_embeddings": true/"tie_word_embeddings": false/' "$work/untied/config.json"
expect "no lm_head and not tied" 1 "lm_head.weight" "tie_word_embeddings" -- "$modelc" check "$llama" --checkpoint "$work/untied"

# ---- configuration
copy key "$tiny"
sed -i 's/"hidden_size"/"attn_logit_cap": 30.0,\n  "hidden_size"/' "$work/key/config.json"
expect "a config key that nothing binds" 1 "error[E0201]" "attn_logit_cap" "config.json" -- "$modelc" check "$llama" --checkpoint "$work/key"
copy noconfig "$tiny"
rm "$work/noconfig/config.json"
expect "no config.json" 1 "error[E0601]" "config.json" "--config" -- "$modelc" run "$llama" --checkpoint "$work/noconfig" --tokens 1
expect "a config that is no JSON" 1 "error[E0602]" -- "$modelc" build "$llama" --config "$llama" -o "$work/out"
copy theta "$tiny"
sed -i '/"rope_theta"/d' "$work/theta/config.json"
expect "theta in neither place" 1 "error[E0204]" "rope_theta" -- "$modelc" check "$llama" --checkpoint "$work/theta"
expect "--set of a key that nothing reads" 2 "error[E0213]" -- "$modelc" check "$llama" --checkpoint "$tiny" --set hiden_size=3
expect "--set without a value" 2 "error[E0608]" -- "$modelc" check "$llama" --checkpoint "$tiny" --set hidden_size

# ---- files and tools
expect "no such model file" 1 "error[E0101]" -- "$modelc" check "$work/nothing.model"
expect "no such checkpoint" 1 "error[E0603]" -- "$modelc" check "$llama" --checkpoint "$work/nothing"
expect "no compiler" 1 "error[E0605]" "CXX" -- env PATH=/nowhere CXX= MODELC_CACHE="$work/cache" "$modelc" run "$llama" --checkpoint "$tiny" --tokens 1
expect "a compiler that does not run" 1 "error[E0605]" -- env CXX="$work/no-such-compiler" MODELC_CACHE="$work/cache" "$modelc" run "$llama" --checkpoint "$tiny" --tokens 1
expect "a compiler that fails" 3 "error[E0606]" -- env CXX=false-compiler PATH="$work/bin:$PATH" MODELC_CACHE="$work/cache" bash -c '
  mkdir -p "$1/bin"; printf "#!/bin/sh\n[ \"\$1\" = --version ] && exit 0\necho it does not like this >&2; exit 1\n" > "$1/bin/false-compiler"
  chmod +x "$1/bin/false-compiler"; exec "$2" run "$3" --checkpoint "$4" --tokens 1' - "$work" "$modelc" "$llama" "$tiny"
[ -z "$(find "$work/cache" -name 'building-*' 2>/dev/null)" ] && pass "nothing half-compiled remains" || fail "nothing half-compiled remains"
if [ "$(id -u)" != 0 ]; then
  mkdir "$work/locked"; chmod 555 "$work/locked"
  expect "an unwritable folder" 1 "error[E0604]" "locked" -- "$modelc" build "$llama" --config "$tiny/config.json" -o "$work/locked/out"
else
  expect "an unwritable folder" 1 "error[E0604]" "/proc/modelc-out" -- "$modelc" build "$llama" --config "$tiny/config.json" -o /proc/modelc-out
fi
: > "$work/file"
expect "a file where a folder should be" 1 "error[E0604]" -- "$modelc" build "$llama" --config "$tiny/config.json" -o "$work/file"
# A full disk: a small file system of its own, where that may be made; else a limit on the size of files.
mkdir "$work/small"
if mount -t tmpfs -o size=16k tmpfs "$work/small" 2>/dev/null; then
  expect "a full disk" 1 "error[E0604]" -- "$modelc" build "$llama" --config "$tiny/config.json" -o "$work/small/out"
  left=$(find "$work/small/out" -type f -name '*.tmp*' -o -type f -size 0 2>/dev/null)
  umount "$work/small"
  [ -z "$left" ] && pass "nothing half-written remains" || fail "nothing half-written remains" "$left"
else
  skip "a full disk: no right to mount one"
fi
expect "a file-size limit" 1 "error[E0604]" -- bash -c 'ulimit -f 4; trap "" XFSZ; exec "$1" build "$2" --config "$3" -o "$4"' - \
  "$modelc" "$llama" "$tiny/config.json" "$work/limited"
left=$(find "$work/limited" -type f 2>/dev/null | grep -v 'llama\.\(h\|cpp\|manifest\.json\)$')
[ -z "$left" ] && pass "the limit leaves nothing half-written" || fail "the limit leaves nothing half-written" "$left"

# ---- a signal while a compiler runs, or what it compiled
cat > "$work/slow" <<'S'
#!/bin/sh
[ "$1" = --version ] && { echo "a compiler that takes its time"; exit 0; }
echo $$ > "$SLOW_PID"
exec sleep 60
S
chmod +x "$work/slow"
mkdir "$work/slow_cache" "$work/slow_tmp"
for command in run bench test; do
  rm -f "$work/slow_pid"
  case $command in
    run) set -- run "$llama" --checkpoint "$tiny" --tokens 1 ;;
    bench) set -- bench "$llama" --config "$tiny/config.json" --checkpoint random ;;
    test) set -- test examples/llama/llama.model ;;
  esac
  CXX="$work/slow" SLOW_PID="$work/slow_pid" MODELC_CACHE="$work/slow_cache" TMPDIR="$work/slow_tmp" "$modelc" "$@" > "$work/log" 2>&1 &
  child=$!
  for _ in $(seq 300); do [ -s "$work/slow_pid" ] && break; sleep 0.1; done
  kill -TERM $child
  wait $child
  status=$?
  left=$(ls -A "$work/slow_cache" "$work/slow_tmp" | grep -v ':$' | grep .)
  kill -0 "$(cat "$work/slow_pid")" 2> /dev/null && left="$left
the compiler"
  [ $status = 143 ] && [ -z "$left" ] && ! grep -qi 'error' "$work/log" && pass "$command: a signal ends it and its compiler, nothing remains" ||
    fail "$command: a signal ends it and its compiler, nothing remains" "status $status; left: $left
$(cat "$work/log")"
done
cp "$llama" "$work/stale.model"
"$modelc" build "$work/stale.model" --config "$tiny/config.json" -o "$work/stale" > "$work/log" 2>&1
[ -e "$work/stale/stale.manifest.json" ] || fail "build writes a manifest" "$(cat "$work/log")"
echo 'module Broken(' >> "$work/stale.model"
expect "a generation that fails" 1 "error[E" -- "$modelc" build "$work/stale.model" --config "$tiny/config.json" -o "$work/stale"
[ ! -e "$work/stale/stale.manifest.json" ] && pass "and its manifest is gone" || fail "and its manifest is gone"

# ---- the model file
cp "$llama" "$work/wrong.model"
sed -i 's/c\.hidden_size, heads \* d,    has_bias/c.hiden_size, heads * d,    has_bias/' "$work/wrong.model"
expect "a misspelt name, with the nearest" 1 "error[E03" "hiden_size" "did you mean" "hidden_size" -- "$modelc" check "$work/wrong.model" --checkpoint "$tiny"
cp "$llama" "$work/wrong.model"
sed -i 's/o_proj: Linear(heads \* d, c\.hidden_size/o_proj: Linear(kv_heads * d, c.hidden_size/' "$work/wrong.model"
expect "a shape that does not fit" 1 "error[E0350]" "[..., kv_heads * d] = [..., 2 * 16]" "head_dim = 16 from config.json:9" -- "$modelc" check "$work/wrong.model" --checkpoint "$tiny"
echo '{"n": 4}' > "$work/n.json"
body() { printf 'language 1\nconfig C { n: dim }\nmodel M(c: C) {\n  param w: [c.n]\n  forward(x: index(c.n)[tokens], at: Batch) -> y: f32[outputs] {\n    %s\n  }\n}\n' "$1" > "$work/body.model"; }
body 'let a = take(w, x)  a = a + 1  return take(a, at.outputs)'
expect "an assignment outside a loop" 1 "error[E0326]" "body.model:6" -- "$modelc" check "$work/body.model" --config "$work/n.json"
body 'let a = take(w, x)  return take(a, at.outputs)  let b = a'
expect "a statement behind return" 1 "error[E0325]" "body.model:6" -- "$modelc" check "$work/body.model" --config "$work/n.json"
printf 'language 1\nmodel X( {\n}\n' > "$work/broken.model"
expect "a syntax error" 1 "error[E01" "broken.model:2" -- "$modelc" check "$work/broken.model"
expect "messages as JSON" 1 '"code":"E01' '"line":2' -- "$modelc" check "$work/broken.model" --json

# ---- at the call
expect "a token outside the vocabulary" 1 "input_ids" "99" "0..63" -- "$modelc" run "$llama" --checkpoint "$tiny" --tokens 1,99
expect "a prompt longer than the context" 1 "context" -- "$modelc" run "$llama" --checkpoint "$tiny" --tokens "$(seq -s, 1 63),$(seq -s, 1 63)"
expect "no tokenizer" 1 "has no tokenizer" "--tokens" -- "$modelc" run "$llama" --checkpoint "$tiny" --prompt hello
# Tokens alone are not enough for a decoder that attends to what an encoder left.
whisper=(examples/whisper/whisper.model --checkpoint examples/whisper/fixtures/whisper-tiny-random)
expect "run before the entry that sets a state" 1 "nothing has been set in the state model.decoder.layers.0.encoder_attn.memory for sequence 0" \
  "help: call encode (input_features: f32[batch, 6, 20]) before" "modelc verify" -- "$modelc" run "${whisper[@]}" --tokens 1,2 -n 2
expect "and bench" 1 "call encode (input_features" -- "$modelc" bench "${whisper[@]}" -p 4 -n 2 -r 1
expect "an expected file without inputs" 1 "input_ids" -- "$modelc" verify "$llama" --checkpoint "$tiny" --expected "$tiny/model.safetensors"
cp "$tiny/expected.safetensors" "$work/stage.safetensors"
sed -i 's/model\.layers\.1\.mlp"/model.layers.1.mlq"/' "$work/stage.safetensors"
expect "an expected stage that the model lacks" 1 "model.layers.1.mlq" "did you mean" -- "$modelc" verify "$llama" --checkpoint "$tiny" --expected "$work/stage.safetensors"
# What is not carried out is said once.
cat > "$work/loops.model" <<'MODEL'
language 1
config C { n: dim }
module Inner(n: dim) {
    param w: [n, n]
    forward(x: [tokens, n]) -> [tokens, n] { return linear(x, w) }
}
module Outer(n: dim) {
    inner: [Inner(n) for i in 0..2]
    forward(x: [tokens, n]) -> [tokens, n] { return x }
}
model M(c: C) {
    context 8
    blocks: [Outer(c.n) for i in 0..2]
    forward(x: [tokens, c.n], at: Batch) -> [tokens, c.n] {
        let h = x
        for b in blocks { for l in b.inner { h = l(h) } }
        return h
    }
}
MODEL
echo '{"n": 4}' > "$work/n.json"
once() {
  local name=$1 text=$2 output
  shift 2
  output=$("$@" 2>&1)
  if [ "$(grep -c '^error' <<< "$output")" = 1 ] && grep -qF "$text" <<< "$output"; then pass "$name"; else fail "$name" "$output"; fi
}
once "a loop inside a loop" "error[E0501]: a loop inside a loop" "$modelc" build "$work/loops.model" --config "$work/n.json" -o "$work/out"
sed 's/^    context 8/    context 8  checkpoint safetensors { one_of { a { one_of { b {} d {} } }  e {} } }/' "$work/loops.model" > "$work/sets.model"
once "a one_of within a one_of" "error[E0351]: a \`one_of\` within a \`one_of\`" "$modelc" check "$work/sets.model" --config "$work/n.json"

# ---- what computes together is on one device
place() { awk '/^test/ && ++n > 1 { exit } 1' "$llama" | sed "s/^    shard {.*/&\n    place { $1 }/" > "$work/placed.model"; }
place '"model.layers.1.self_attn.q_proj": gpu(0)    "**": cpu(0)'
line=$(grep -n 'place {' "$work/placed.model" | cut -d: -f1)
for command in check build; do
  extra=(); [ $command = build ] && extra=(-o "$work/torn")
  expect "$command: a product on two devices" 1 "error[E0433]" "\`model.layers.1.self_attn\` computes one product" "placed.model:$line:13" \
    "q_proj.weight is on vulkan:0, by" "k_proj.weight is on cpu, by" "as a whole" -- "$modelc" $command "$work/placed.model" --checkpoint "$tiny" ${extra[@]+"${extra[@]}"}
done
[ ! -e "$work/torn" ] && pass "and nothing is written" || fail "and nothing is written"
expect "by --device" 2 "error[E0608]" "\`model.layers.0.mlp\` computes one product" "up_proj.weight is on vulkan:0, by" -- "$modelc" run "$llama" \
  --checkpoint "$tiny" --tokens 1 --device "model.layers.0.mlp.up_proj=vulkan:0,cpu"
cat > "$work/apart.model" <<'MODEL'
language 1
config C { n: dim }
module Shifted(n: dim) { param gain: [n]  param bias: [n]  forward(x: [tokens, n]) -> [tokens, n] { return x * gain + bias } }
model M(c: C) {
    norm: Shifted(c.n)
    forward(x: [tokens, c.n]) -> [tokens, c.n] { return norm(x) }
    place { "**.gain": gpu(0) }
}
MODEL
expect "weights of one module" 1 "error[E0433]" "\`norm\` has weights on several devices" "norm.bias is on cpu, as no line names it" "apart.model:7:13" -- "$modelc" check "$work/apart.model" --config "$work/n.json"
place 'model.layers[0..1]: gpu(0)    lm_head: gpu(1)    "**": cpu(0)'
expect "whole modules are no mistake" 0 "Llama:" -- "$modelc" check "$work/placed.model" --checkpoint "$tiny"

# Twenty messages, then a count; of names and of syntax.
{ printf 'language 1\nconfig C { d: dim }\nmodel M(c: C) {\n'; for i in $(seq 50); do echo "    let a$i = c.e$i"; done
  printf '    forward(x: [tokens, c.d]) { return x }\n}\n'; } > "$work/fifty.model"
expect "fifty unknown names" 1 "error[E0315]: C has no field \`e20\`" "30 more errors not shown" -- "$modelc" check "$work/fifty.model"
[ "$("$modelc" check "$work/fifty.model" 2>&1 | grep -c '^error')" = 20 ] && pass "twenty of them are shown" || fail "twenty of them are shown"
[ "$("$modelc" check --json "$work/fifty.model" 2>/dev/null | grep -c '"E0315"')" = 50 ] && pass "all in JSON" || fail "all in JSON"
{ printf 'language 1\nfn f(x) {\n'; for i in $(seq 50); do echo "    let a$i = x + * $i"; done; printf '    return x\n}\n'; } > "$work/fifty.model"
expect "fifty mistakes of syntax in one body" 1 "fifty.model:22:" "30 more errors not shown" -- "$modelc" check "$work/fifty.model"

# A fault of the configuration is shown with its line.
printf '{\n  "d": 4,\n  "layers": 9, "window": 3\n}\n' > "$work/c.json"
printf 'language 1\nconfig C { d: dim  layers: int in 1..4 }\nmodel M(c: C) { forward(x: [tokens, c.d]) { return x * float(c.layers) } }\n' > "$work/c.model"
expect "a value out of range" 1 "c.json:3:13" '  "layers": 9, "window": 3' "            ^" -- "$modelc" check "$work/c.model" --config "$work/c.json"
expect "a key that nothing reads" 1 "c.json:3:16" '^^^^^^^^' -- "$modelc" check "$work/c.model" --config "$work/c.json"
printf '{\n  "d": 4,\n  "layers": 3,,\n}\n' > "$work/c.json"
expect "a comma too many" 1 "c.json:3:15" '  "layers": 3,,' -- "$modelc" check "$work/c.model" --config "$work/c.json"
printf 'd: 4\nlayers: 9\n' > "$work/c.yaml"
expect "a value out of range in YAML" 1 "c.yaml:2:9" "layers: 9" -- "$modelc" check "$work/c.model" --config "$work/c.yaml"
printf '{"d": 4, "layers": 3}\n' > "$work/c.json"
expect "a value that --set says has no line" 1 "--> --set layers=9" -- "$modelc" check "$work/c.model" --config "$work/c.json" --set layers=9
finish
