#!/usr/bin/env bash
# The call itself: help, statuses, options that a later version carries out.
source "$(dirname "$0")/lib.sh"

llama=examples/llama/llama.model
tiny=examples/llama/fixtures/llama-tiny
expect "no command" 2 "error:" "help" -- "$modelc"
expect "an unknown command" 2 "error:" -- "$modelc" chek $llama
expect "an unknown option" 2 "error:" -- "$modelc" check $llama --chekpoint x
expect "help" 0 check build run verify test inspect dump explain -- "$modelc" --help
expect "help of a command" 0 "usage: modelc run FILE.model --checkpoint PATH [options]" "--prompt TEXT" -- "$modelc" run --help
for command in "" $("$modelc" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  wide=$("$modelc" $command --help | LC_ALL=C.UTF-8 grep -E '^.{101}')
  [ -z "$wide" ] && pass "help of modelc $command fits 100 columns" || fail "help of modelc $command fits 100 columns" "$wide"
done
expect "a misspelt option, with the nearest" 2 "did you mean \`--prompt\`" "modelc run --help" -- "$modelc" run $llama --checkpoint $tiny --promt a
expect "version" 0 "modelc 0." "ANTLR " "compiler " "instruction sets of this machine: portable" "Vulkan" -- "$modelc" --version
if "$modelc" --version | grep -q "^Vulkan not built"; then skip "version: of what compiles shaders"
else expect "version: of what compiles shaders" 0 "Vulkan headers 1." "glslang 1" "SPIRV-Tools v20" -- "$modelc" --version; fi
expect "a backend that is none" 2 "error[E0608]" "expected cpu or vulkan" -- "$modelc" build $llama --config $tiny/config.json -o "$work/v" --backend metal
expect "a device that is none" 2 "error[E0608]" 'there is no device "tpu"' "cpu, vulkan or vulkan:N" -- "$modelc" run $llama --checkpoint $tiny --tokens 1 --device tpu
expect "a device of a list that is none" 2 "error[E0608]" 'there is no device "tpu"' 'in "lm_head=tpu,cpu"' -- "$modelc" run $llama --checkpoint $tiny --tokens 1 --device lm_head=tpu,cpu
expect "a range of --device that ends too early" 2 "error[E0608]" "3..2 ends before it begins" "help:" -- "$modelc" verify $llama --checkpoint $tiny --device "model.layers[3..2]=cpu,cpu" --expected $tiny/expected.safetensors
[ ! -e "$work/v" ] && pass "and nothing is written" || fail "and nothing is written"
expect "--inline is refused" 2 "error[E0607]" -- "$modelc" build $llama --config $tiny/config.json -o "$work/v" --inline
expect "block encodings are refused" 2 "error[E0607]" -- "$modelc" build $llama --config $tiny/config.json -o "$work/v" --encodings q8_0
expect "--chat without a template" 1 "has no chat template" -- "$modelc" run $llama --checkpoint examples/tiny --chat hello
expect "--system without --chat" 2 "--system needs --chat" -- "$modelc" run $llama --checkpoint examples/tiny --prompt a --system b
expect "a bias without a number" 2 "expected a token id and a number" -- "$modelc" run $llama --checkpoint examples/tiny --prompt a --logit-bias 3
expect "a .gguf is refused" 1 "GGUF" -- bash -c 'printf GGUF > "$1/x.gguf"; exec "$2" inspect "$1/x.gguf"' - "$work" "$modelc"
expect "a pickle is refused, with the way out" 1 "safetensors" -- bash -c ': > "$1/pytorch_model.bin"; exec "$2" inspect "$1/pytorch_model.bin"' - "$work" "$modelc"
expect "an isa that is none" 1 "mmx" "avx2" -- "$modelc" run $llama --checkpoint $tiny --tokens 1 --isa mmx
expect "a list of devices" 0 "passed" -- "$modelc" verify $llama --checkpoint $tiny --expected $tiny/expected.safetensors --device "lm_head=cpu,model.layers[0..1]=cpu,cpu"
expect "a temperature below 0" 2 "temperature" -- "$modelc" run $llama --checkpoint $tiny --tokens 1 --temperature -1
expect "explain of nothing" 2 "E" -- "$modelc" explain E9999
printf 'language 1\nimport parts\nconfig C { n: dim }\nmodel M(c: C) { l: Part() }\n' > "$work/user.model"
mkdir -p "$work/lib/parts" "$work/lib2"
printf 'language 1\nmodule Part() { }\n' | tee "$work/lib/parts/parts.model" > "$work/lib2/parts.model"
expect "an import that is nowhere" 1 "error[E0304]" "looked for $work/parts.model" "-I" -- "$modelc" check "$work/user.model"
expect "-I names a folder" 0 "without a configuration" -- "$modelc" check "$work/user.model" -I "$work/lib"
expect "two folders with the file" 1 "error[E0330]" "$work/lib2/parts.model" -- "$modelc" check "$work/user.model" -I "$work/lib" -I "$work/lib2"
expect "check without a configuration" 0 "without a configuration" -- "$modelc" check $llama
expect "inspect of a checkpoint" 0 "q_proj" "f32" -- "$modelc" inspect $tiny
expect "inspect as JSON" 0 '"tensors"' -- "$modelc" inspect $tiny --json
expect "no mmap gives the same" 0 passed -- "$modelc" verify $llama --checkpoint $tiny --expected $tiny/expected.safetensors --no-mmap
expect "verify as JSON" 0 '"passed":true' -- "$modelc" verify $llama --checkpoint $tiny --expected $tiny/expected.safetensors --json
expect "bench" 0 "tokens/s" -- "$modelc" bench $llama --checkpoint examples/tiny -p 16 -n 4 -r 1
expect "bench of random weights" 0 "tokens/s" -- "$modelc" bench $llama --config $tiny/config.json --checkpoint random -p 16 -n 4 -r 1
awk '/^```model/ { on = 1; next } /^```/ { on = 0 } on' README.md > "$work/readme.model"
expect "the README's model file" 0 "Small:" -- "$modelc" check "$work/readme.model" --checkpoint examples/tiny
expect "and it equals transformers" 0 passed -- "$modelc" verify "$work/readme.model" --checkpoint examples/tiny --expected examples/tiny/expected.safetensors
finish
