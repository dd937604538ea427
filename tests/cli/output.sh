#!/usr/bin/env bash
# Generated C++: the same bytes from the same input wherever it lies, the same size for 2 and for 126 layers, and not one
# warning from the compilers of the day.
source "$(dirname "$0")/lib.sh"

config=examples/llama/fixtures/llama-tiny/config.json
build() { "$modelc" build "$@" > /dev/null 2>"$work/stderr" || { fail "build $*" "$(cat "$work/stderr")"; return 1; }; }

build examples/llama/llama.model --config $config -o "$work/a"
mkdir -p "$work/else where"
cp examples/llama/llama.model $config "$work/else where/"
(cd "$work/else where" && "$modelc" build llama.model --config config.json -o "$work/b" > /dev/null 2>&1)
diff -r "$work/a" "$work/b" > "$work/diff" && pass "the same bytes from another folder" || fail "the same bytes from another folder" "$(head -n 20 "$work/diff")"
before=$(stat -c %Y.%y "$work/a/llama.cpp")
sleep 1
build examples/llama/llama.model --config $config -o "$work/a"
[ "$before" = "$(stat -c %Y.%y "$work/a/llama.cpp")" ] && pass "unchanged files keep their time" || fail "unchanged files keep their time"
grep -rnE "$work|$PWD|[0-9]{4}-[0-9]{2}-[0-9]{2}|0x[0-9a-f]{6,}" "$work/a" > "$work/found" && fail "no path, date or address in the output" "$(head -n 5 "$work/found")" || pass "no path, date or address in the output"

for layers in 2 126; do build examples/llama/llama.model --config $config --set num_hidden_layers=$layers -o "$work/l$layers"; done
a=$(cat "$work"/l2/llama.h "$work"/l2/llama.cpp | wc -l) b=$(cat "$work"/l126/llama.h "$work"/l126/llama.cpp | wc -l)
[ "$a" = "$b" ] && [ "$a" -gt 100 ] && pass "2 and 126 layers: $a lines" || fail "2 and 126 layers" "$a lines and $b lines"

# Every feature of the configuration that changes the code, under warnings as errors.
warnings=(-std=c++20 -Wall -Wextra -Werror -Wshadow -Wconversion -I. -fsyntax-only)
for name in llama-tiny llama-bias llama-rope-yarn llama-rope-dynamic llama-tied; do
  build examples/llama/llama.model --config examples/llama/fixtures/$name/config.json -o "$work/$name" || continue
  for compiler in g++ clang++-16; do
    if ! command -v $compiler > /dev/null; then skip "$name under $compiler: not installed"; continue; fi
    # -Wshadow and -Wconversion are ours, beyond what is promised; the runtime's headers count too.
    expect "$name under $compiler" 0 -- $compiler "${warnings[@]}" "-I$work/$name" "$work/$name/llama.cpp"
  done
done

build examples/llama/llama.model --config $config -o "$work/d" --depfile "$work/d/llama.d"
for f in examples/llama/llama.model stdlib/nn/linear.model stdlib/nn/rope.model $config; do
  grep -q "$f" "$work/d/llama.d" && pass "the depfile names $f" || fail "the depfile names $f" "$(cat "$work/d/llama.d")"
done
expect "the manifest lists weights" 0 '"model.layers.1.mlp.down_proj.weight"' '"shape"' -- cat "$work/a/llama.manifest.json"
build examples/llama/llama.model --config $config -o "$work/n" --name Other --namespace acme::models
grep -q "class Other final" "$work/n/llama.h" && grep -q "namespace acme::models" "$work/n/llama.h" && pass "--name and --namespace" || fail "--name and --namespace"
expect "a name that is no identifier" 2 "error[E0608]" -- "$modelc" build examples/llama/llama.model --config $config -o "$work/x" --name 1a
expect "the plan prints its peak" 0 "arena:" "tokens" -- "$modelc" dump examples/llama/llama.model --config $config --stage plan
for stage in ast tree program graph plan; do
  expect "dump --stage $stage" 0 -- "$modelc" dump examples/llama/llama.model --config $config --stage $stage
done
# The graph's text is an input too: the same text again, and the same sources but for the name of the file.
"$modelc" dump examples/llama/llama.model --config $config --stage graph > "$work/llama.graph"
"$modelc" dump "$work/llama.graph" --stage graph > "$work/again.graph"
cmp -s "$work/llama.graph" "$work/again.graph" && pass "a graph's text reads back" || fail "a graph's text reads back" "$(diff "$work/llama.graph" "$work/again.graph" | head -5)"
build "$work/llama.graph" -o "$work/g"
cmp -s "$work/a/llama.cpp" "$work/g/llama.cpp" && pass "and builds to the same bytes" || fail "and builds to the same bytes" "$(diff "$work/a/llama.cpp" "$work/g/llama.cpp" | head -5)"
# So is the plan's.
for model in llama:llama-tied gemma3_text:gemma3_text-tiny qwen3_moe:qwen3_moe-tiny vit:vit-tiny; do
  file=examples/${model%%:*}/${model%%:*}.model
  their=examples/${model%%:*}/fixtures/${model##*:}/config.json
  [ -f "$their" ] || their=$(ls examples/"${model%%:*}"/fixtures/*/config.json | head -1)
  name=${model%%:*}
  "$modelc" dump "$file" --config "$their" --stage plan > "$work/$name.plan" 2> "$work/said" || fail "the plan of $name" "$(cat "$work/said")"
  "$modelc" dump "$work/$name.plan" --stage plan > "$work/again.plan"
  cmp -s "$work/$name.plan" "$work/again.plan" && pass "a plan's text reads back: $name" || fail "a plan's text reads back: $name" "$(diff "$work/$name.plan" "$work/again.plan" | head -5)"
  build "$file" --config "$their" -o "$work/m"
  build "$work/$name.plan" -o "$work/p"
  cmp -s "$work/m/$name.cpp" "$work/p/$name.cpp" && cmp -s "$work/m/$name.h" "$work/p/$name.h" && pass "and builds to the same bytes: $name" ||
    fail "and builds to the same bytes: $name" "$(diff "$work/m/$name.cpp" "$work/p/$name.cpp" | head -5)"
done
# Where modules are placed is data of the class, the same through each text.
mkdir -p "$work/placed"
sed 's/^    shard {.*/&\n    place { model.layers[0..div(c.num_hidden_layers, 2)]: gpu(1)    lm_head: cpu(0)    model: gpu(0) }/' examples/llama/llama.model > "$work/placed/llama.model"
placed=$work/placed/llama.model
expect "check says what place comes to" 0 "model.layers[0..1]\` on gpu(1): 10 weights; \`lm_head\` on cpu(0): 1 weight; \`model\` on gpu(0): 12 weights" -- \
  "$modelc" check "$placed" --config $config
expect "a GPU in place, and no shaders" 0 "\`place\` names vulkan:1" "--backend cpu,vulkan adds them" -- "$modelc" build "$placed" --config $config -o "$work/placed/m"
expect "the class says its lines" 0 '{.pattern = "model.layers", .first = 0, .end = 1, .device = "vulkan:1", .where = "llama.model:' \
  '{.pattern = "lm_head", .device = "cpu", .where = "llama.model:' -- cat "$work/placed/m/llama.cpp"
expect "and compiles" 0 -- g++ "${warnings[@]}" "-I$work/placed/m" "$work/placed/m/llama.cpp"
for stage in graph plan; do
  "$modelc" dump "$placed" --config $config --stage $stage > "$work/placed/llama.$stage" 2> "$work/said"
  expect "the note for a $stage" 0 "--backend cpu,vulkan adds them" -- "$modelc" build "$work/placed/llama.$stage" -o "$work/placed/$stage"
  cmp -s "$work/placed/m/llama.cpp" "$work/placed/$stage/llama.cpp" && cmp -s "$work/placed/m/llama.h" "$work/placed/$stage/llama.h" &&
    pass "a $stage with place builds to the same bytes" || fail "a $stage with place builds to the same bytes" "$(diff "$work/placed/m/llama.cpp" "$work/placed/$stage/llama.cpp" | head -5)"
done
lines() { "$modelc" dump "$1" --config $config --stage graph 2> /dev/null | sed -n 's/^\(place .*\) @ .*/\1/p'; }
"$modelc" dump "$placed" --config $config --stage program > "$work/placed/program.model" 2> /dev/null
"$modelc" flatten "$placed" > "$work/placed/flat.model" 2> /dev/null
for form in program flat; do
  [ "$(lines "$work/placed/$form.model")" = "$(lines "$placed")" ] && [ "$(lines "$placed" | wc -l)" = 3 ] && pass "the $form keeps the lines" ||
    fail "the $form keeps the lines" "$(lines "$placed"; lines "$work/placed/$form.model")"
done
echo "plan 1" > "$work/half.plan"
expect "a plan without its graph" 1 "error[E0503]" "the graph is missing" -- "$modelc" dump "$work/half.plan" --stage plan
sed 's/rms_norm {/rms_norn {/' "$work/llama.plan" > "$work/bad.plan"
expect "a plan with an unknown step" 1 "error[E0503]" "line " "there is no step rms_norn" -- "$modelc" build "$work/bad.plan" -o "$work/p2"
sed '0,/frame: \[[^]]*tokens\]/s//frame: [64]/' "$work/llama.plan" > "$work/wrong.plan"
expect "a plan that breaks a rule" 1 "error[E0503]" "does not lie in the frame" -- "$modelc" build "$work/wrong.plan" -o "$work/p2"
# The tree's and the program's text are model files.
"$modelc" dump examples/llama/llama.model --stage ast > "$work/ast.model"
"$modelc" dump "$work/ast.model" --stage ast > "$work/again.model"
cmp -s "$work/ast.model" "$work/again.model" && pass "the tree's text reads back" || fail "the tree's text reads back"
"$modelc" dump "$work/ast.model" --stage tree > "$work/tree"
"$modelc" dump examples/llama/llama.model --stage tree | cmp -s - "$work/tree" && pass "to the same tree" || fail "to the same tree"
"$modelc" dump examples/llama/llama.model --config $config --stage program > "$work/program.model"
grep -q "^// .*hidden_size: dim = " "$work/program.model" && pass "the program says what the configuration makes of it" || fail "the program says what the configuration makes of it"
weights() { "$modelc" dump "$1" --config $config --stage graph | grep -oE '^ *(weight|state) .*' | sed -E 's/ @ .*//'; }
[ "$(weights "$work/program.model")" = "$(weights examples/llama/llama.model)" ] && [ -n "$(weights examples/llama/llama.model)" ] && pass "the program's text reads back" ||
  fail "the program's text reads back" "$(diff <(weights "$work/program.model") <(weights examples/llama/llama.model) | head -5)"
expect "a plan comes after the graph" 1 "E0608" "comes after that stage" -- "$modelc" dump "$work/llama.plan" --stage graph
echo "graph 1 nonsense" > "$work/bad.graph"
expect "a text that is no graph" 1 "error[E0502]" "line 1" -- "$modelc" dump "$work/bad.graph" --stage plan
sed 's/linear(%x/linear(%nothing/' "$work/llama.graph" > "$work/wrong.graph"
expect "a graph that breaks a rule" 1 "error[E0502]" -- "$modelc" build "$work/wrong.graph" -o "$work/g2"
expect "dump of one module" 0 "Linear" -- "$modelc" dump stdlib/nn/linear.model --stage graph --root "Linear(5, 10)"
expect "inspect of a model" 0 "q_proj" "LlamaLayer" -- "$modelc" inspect examples/llama/llama.model --config $config
if command -v python3 > /dev/null; then
  expect "lines of each architecture" 0 '`examples/llama/llama.model`' '`stdlib/nn/rope.model`' -- python3 examples/lines.py
fi
expect "explain" 0 "E0312" -- "$modelc" explain E0312
finish
