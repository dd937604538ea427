#!/usr/bin/env bash
# The Vulkan backend from the model file to the numbers: what `build` writes, splits between devices, the trained model's text, and a
# first device that is not there. Each fixture: vulkan_fixtures.sh. Without a driver: SKIPPED.
source "$(dirname "$0")/lib.sh"

llama=examples/llama/llama.model
tiny=examples/llama/fixtures/llama-tiny
expect "devices" 0 cpu -- "$modelc" devices
expect "devices for a program" 0 '"name":"cpu"' -- "$modelc" devices --json
if "$modelc" build $llama --config $tiny/config.json -o "$work/none" --backend vulkan 2>&1 | grep -q "built without Vulkan"; then
  expect "built without Vulkan: what was missing is said" 1 "error[E0610]" "this was missing" -- "$modelc" build $llama --config $tiny/config.json -o "$work/v" --backend vulkan
  skip "SKIPPED: this modelc was built without Vulkan"
  finish
  exit
fi

expect "build writes shaders" 0 shaders/llama_rope_cos.comp llama_shaders.h -- "$modelc" build $llama --config $tiny/config.json -o "$work/one" --backend cpu,vulkan
"$modelc" build $llama --config $tiny/config.json -o "$work/two" --backend cpu,vulkan > "$work/log" 2>&1
if diff -r "$work/one" "$work/two" > "$work/diff"; then pass "the same bytes each time"; else fail "the same bytes each time" "$(cat "$work/diff")"; fi
if awk 'length > 130 { exit 1 }' "$work/one/llama_shaders.h"; then pass "no long lines in what is embedded"; else fail "no long lines in what is embedded"; fi

# A modelc elsewhere, whose shaders' common text has a mistake.
mkdir -p "$work/moved/bin" "$work/moved/share/modelc"
cp "$modelc" "$work/moved/bin/modelc"
cp -r stdlib "$work/moved/share/modelc/"
cp -r shaders "$work/moved/share/modelc/"
echo 'float broken(float x) { return undeclared; }' >> "$work/moved/share/modelc/shaders/include/map.glsl"
expect "a shader that does not compile" 1 "error[E0611]" "map.glsl:" "undeclared" "it computes" "rope.model:" "^" -- "$work/moved/bin/modelc" build $llama \
  --config $tiny/config.json -o "$work/broken" --backend vulkan
[ ! -e "$work/broken" ] && pass "and nothing is written" || fail "and nothing is written"

if ! "$modelc" devices 2>&1 | grep -q '^vulkan:0'; then
  expect "without a driver run says so" 1 "Vulkan" "help:" -- "$modelc" verify $llama --checkpoint $tiny --expected $tiny/expected.safetensors --backend vulkan
  skip "SKIPPED: no Vulkan driver is installed"
  finish
  exit
fi

expect "no driver is said" 1 "Vulkan" "help:" -- env VK_ICD_FILENAMES=/nowhere VK_DRIVER_FILES=/nowhere "$modelc" verify $llama --checkpoint $tiny \
  --expected $tiny/expected.safetensors --backend vulkan
expect "a device that is not there" 1 "no device vulkan:77" "vulkan:0 is" -- "$modelc" verify $llama --checkpoint $tiny \
  --expected $tiny/expected.safetensors --device vulkan:77
expect "the tiny model on Vulkan" 0 passed "on Vulkan" -- "$modelc" verify $llama --checkpoint examples/tiny --expected examples/tiny/expected.safetensors --backend vulkan
for without in subgroup storage16,storage8 float16,int8,int16 subgroup,float16,int8,int16,storage16,storage8,float64,int64; do
  expect "without $without" 0 passed "on Vulkan" -- env MODELC_VULKAN_WITHOUT=$without "$modelc" verify $llama --checkpoint examples/tiny \
    --expected examples/tiny/expected.safetensors --backend vulkan
done
expect "a feature that nobody knows" 1 "sub_group" "known are" -- env MODELC_VULKAN_WITHOUT=sub_group "$modelc" verify $llama --checkpoint examples/tiny \
  --expected examples/tiny/expected.safetensors --backend vulkan
# The file of pipelines: another's bytes, a part of it, and what is no file at all.
cached=(timeout 300 env MODELC_CACHE="$work/cache" "$modelc" verify $llama --checkpoint $tiny --expected $tiny/expected.safetensors --within 1e-4 --backend vulkan)
expect "a file of pipelines is written" 0 passed -- "${cached[@]}"
pipelines=$(echo "$work"/cache/vulkan-*.pipelines)
cp "$pipelines" "$work/pipelines"
for what in noise part nothing pipe; do
  rm -f "$pipelines"
  case $what in
    noise) head -c 5000 /dev/urandom > "$pipelines" ;;
    part) head -c 50 "$work/pipelines" > "$pipelines" ;;
    nothing) : > "$pipelines" ;;
    pipe) mkfifo "$pipelines" ;;
  esac
  expect "pipelines: $what in its place" 0 passed -- "${cached[@]}"
  if [ $what = pipe ]; then
    if [ -p "$pipelines" ]; then pass "and is left there"; else fail "and is left there" "$(ls -l "$pipelines")"; fi
  elif [ -f "$pipelines" ] && [ "$(head -c 8 "$pipelines")" = modelcVK ]; then pass "and it is written anew"
  else fail "and it is written anew" "$(ls -l "$pipelines")"; fi
done
expect "every step recorded anew" 0 passed " 0 of them recorded before" -- "$modelc" verify $llama --checkpoint examples/tiny \
  --expected examples/tiny/expected.safetensors --backend vulkan --no-device-graph
expect "what ran where, for a program" 0 '"operations":"' " dispatches" '"device":"Vulkan' -- "$modelc" verify $llama --checkpoint examples/tiny \
  --expected examples/tiny/expected.safetensors --backend vulkan --json
expect "in chunks of 5" 0 passed "on Vulkan" -- "$modelc" verify $llama --checkpoint examples/llama/fixtures/llama-batch \
  --expected examples/llama/fixtures/llama-batch/expected.safetensors --chunk 5 --backend vulkan
expect "a wrong checkpoint is found" 1 FAILED "first stage that differs: model.embed_tokens" -- "$modelc" verify $llama --backend vulkan \
  --checkpoint examples/llama/fixtures/llama-theta-both --expected examples/llama/fixtures/llama-tiny/expected.safetensors
# Layers on the GPU and the rest on the CPU: as the file says, or the command line.
mkdir -p "$work/placed/fixtures"
ln -s "$PWD/examples/llama/fixtures/llama-tiny" "$work/placed/fixtures/llama-tiny"
placed=$work/placed/llama.model
place() { awk '/^test/ && ++n > 1 { exit } 1' $llama | sed "s/^    shard {.*/&\n    place { $1 }/" > "$placed"; }
place 'model.layers[0..div(c.num_hidden_layers, 2)]: gpu(0)    lm_head: gpu(0)    "**": cpu(0)'
expect "half of the layers on Vulkan" 0 passed "transfers between them" -- "$modelc" verify "$placed" --checkpoint $tiny --expected $tiny/expected.safetensors --within 1e-4
expect "by --device" 0 passed "transfers between them" -- "$modelc" verify $llama --checkpoint $tiny --expected $tiny/expected.safetensors --within 1e-4 \
  --device "model.layers[1..]=vulkan:0,cpu"
expect "--device cpu takes the place of the file's lines" 0 passed -- env VK_ICD_FILENAMES=/nowhere VK_DRIVER_FILES=/nowhere "$modelc" verify "$placed" \
  --checkpoint $tiny --expected $tiny/expected.safetensors --within 1e-4 --device cpu
expect "without a driver the lines and a way out are said" 1 "\`place\` puts on vulkan:0" "--device cpu" -- env VK_ICD_FILENAMES=/nowhere VK_DRIVER_FILES=/nowhere \
  "$modelc" verify "$placed" --checkpoint $tiny --expected $tiny/expected.safetensors
expect "bench of a model on two devices" 0 "tokens/s" -- "$modelc" bench "$placed" --checkpoint $tiny -p 4 -n 2 -r 1
expect "the file's tests run as it says" 0 "passed, 0 failed" -- "$modelc" test "$placed"
place '"**": gpu(77)'
expect "or on the CPU, where they cannot" 0 "skipped: \`place\`: there is no vulkan:77 here" "passed, 0 failed" -- "$modelc" test "$placed"
cat > "$work/op.model" <<'MODEL'
language 1
op doubled(x: [..., n], b: [n]) -> [..., n] { reference 2 * x + b }
op kept(keep: bool[n], result: [n]) -> ([n], bool[n], index(9)[]) {
    reference { return where(keep, result, 0.0), result > 1.5, argmax(result) as index(9) }
}
op curves(x: [n]) -> [n] { reference gelu(x) + erf(x) * tanh(x) + silu(x) + sin(x * 50) - cos(x * 3000) + log(abs(x) + 0.001) + softplus(x) }
op powers(x: [n]) -> [n] { reference x ^ 3 + abs(x) ^ 0.37 + exp(-x * x) + x % 0.7 + floor(x) - ceil(x) }
test "flags and whole numbers" { op kept  input keep = [true, false, true]  input result = [1, 2, 3]  same reference, cpu, vulkan within 0 }
test "numbers"  { op doubled  input x = linspace(-1, 1, 6) as [2, 3]  input b = [1, 2, 3]  same reference, cpu, vulkan within 1e-6 }
test "curves"   { op curves  input x = linspace(-6, 6, 961)  same reference, cpu, vulkan within 2e-5 }
op rest(x: [n], y: [n]) -> ([n], [n]) { reference { return x % y, (x * 1e30) % (y * 3e-9) } }
test "remainders" { op rest  input x = linspace(-3e7, 3e7, 961)  input y = linspace(0.3, -7, 961)  same reference, cpu, vulkan within 1e-6 }
test "powers"   { op powers  input x = linspace(-3, 3, 961)  same reference, cpu, vulkan within 2e-5 }
MODEL
expect "operations against their references" 0 "5 passed, 0 failed" -- "$modelc" test "$work/op.model"
sed '/^test/d' "$work/op.model" > "$work/exact.model"
echo 'test "t" { op curves  input x = linspace(-6, 6, 961)  same reference, vulkan within 0 }' >> "$work/exact.model"
expect "a bound that f32 cannot keep fails" 1 "vulkan against the reference" -- "$modelc" test "$work/exact.model"
prompt="Once upon a time"
cpu=$("$modelc" run $llama --checkpoint examples/tiny --prompt "$prompt" -n 60 --mode exact 2> "$work/log")
vulkan=$("$modelc" run $llama --checkpoint examples/tiny --prompt "$prompt" -n 60 --backend vulkan 2> "$work/log")
if [ -n "$cpu" ] && [ "$cpu" = "$vulkan" ]; then pass "the same text as on the CPU"; else fail "the same text as on the CPU" "$cpu
---
$vulkan"; fi
# A pack of what this device holds: rows that no shader reads as they are stored become f32 in it, permuted ones are turned.
for fixture in llama-gguf llama-fp8; do
  cp -r "examples/llama/fixtures/$fixture" "$work/$fixture"
  expect "$fixture packed for Vulkan" 0 "llama.vulkan-rows.pack written" -- "$modelc" pack $llama "$work/$fixture" --device vulkan
  expect "and up to date" 0 "llama.vulkan-rows.pack is up to date" -- "$modelc" pack $llama "$work/$fixture" --backend vulkan
  for how in "" --no-pack; do
    "$modelc" run $llama --checkpoint "$work/$fixture" --tokens 1,2,3,4,5 -n 3 --show-tokens --ignore-eos --trace '**' --export "$work/pack$how.safetensors" \
      --backend vulkan $how > "$work/log" 2>&1
  done
  if [ -s "$work/pack.safetensors" ] && cmp -s "$work/pack.safetensors" "$work/pack--no-pack.safetensors"; then pass "$fixture: the same values from it"
  else fail "$fixture: the same values from it" "$(cat "$work/log")"; fi
  rm -f "$work"/pack*.safetensors
done
expect "without --mode it is exact here" 0 "mode exact" -- "$modelc" run $llama --checkpoint examples/tiny --prompt "$prompt" -n 4 --backend vulkan
expect "mode fast is refused where it is not carried out" 1 "mode fast is not carried out on Vulkan" "help: mode exact" -- "$modelc" run $llama \
  --checkpoint examples/tiny --prompt "$prompt" -n 4 --mode fast --backend vulkan
finish
