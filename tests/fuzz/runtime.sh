#!/usr/bin/env bash
# Fuzzes what the runtime reads: runtime.sh TARGET [MINUTES | planted [MINUTES] | one FILE | keep]. README.md here.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
target=${1:?TARGET: safetensors, gguf, shards, config, tokenizer, gguf_tokenizer, chat or adapter}
what=${2:-10}
build=${MODELC_FUZZ_BUILD:-build-fuzz}
version=${MODELC_FUZZ_CLANG:--16}

# The files whose lines the target is there to reach.
case $target in
  safetensors) parsers='runtime/checkpoint/safetensors/reader.cpp runtime/checkpoint/safetensors/members.cpp runtime/checkpoint/index.cpp runtime/checkpoint/first_bytes.cpp runtime/base/json_parse.cpp' ;;
  gguf) parsers='runtime/checkpoint/gguf/reader.cpp runtime/checkpoint/gguf/types.cpp runtime/base/metadata.cpp' ;;
  shards) parsers='runtime/checkpoint/safetensors/shards.cpp runtime/base/json_parse.cpp' ;;
  config) parsers='frontend/sema/config_values.cpp frontend/sema/config_object.cpp frontend/sema/config_tree.cpp runtime/base/json_parse.cpp' ;;
  tokenizer) parsers='runtime/tokenizer/tokenizer.cpp runtime/tokenizer/reader.cpp runtime/tokenizer/added_tokens.cpp runtime/tokenizer/bpe.cpp runtime/tokenizer/unigram.cpp runtime/tokenizer/word_models.cpp runtime/tokenizer/normalizer.cpp runtime/tokenizer/pre_tokenizer.cpp runtime/tokenizer/post_processor.cpp runtime/tokenizer/decoder.cpp runtime/tokenizer/charsmap.cpp runtime/tokenizer/regex_translate.cpp' ;;
  gguf_tokenizer) parsers='runtime/tokenizer/gguf.cpp runtime/tokenizer/gguf_patterns.cpp' ;;
  chat) parsers='runtime/chat/lexer.cpp runtime/chat/parser.cpp runtime/chat/interpreter.cpp runtime/chat/builtins.cpp runtime/chat/filters.cpp runtime/chat/value.cpp runtime/chat/template.cpp' ;;
  adapter) parsers='runtime/checkpoint/adapter_config.cpp' ;;
  *) echo "no target $target" >&2; exit 2 ;;
esac

# Of an input, in bytes: one of a weight file need not be long to be wrong.
case $target in safetensors|gguf|shards|adapter) longest=8000 ;; *) longest=30000 ;; esac

twin=fuzz_$target
[ "$what" = planted ] && twin=${twin}_planted
[ -f "$build/build.ninja" ] || cmake -S . -B "$build" -G Ninja -DMODELC_FUZZ=ON -DMODELC_WERROR=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_COMPILER="clang++$version"
ninja -C "$build" -j "${MODELC_FUZZ_JOBS:-2}" "$twin"
fuzzer=$root/$build/tests/fuzz/$twin
if [ "$what" = one ]; then exec "$fuzzer" "$3"; fi

work=$root/$build/fuzz-$target
[ "$what" = planted ] && work=$work-planted
mkdir -p "$work/corpus" "$work/seeds"

# Valid inputs: those committed for the target, and the fixtures of the tests. The planted fault is looked for in the former
# alone, where there are any: they are small.
whole=1
[ -d "tests/fuzz/seeds/$target" ] && cp "tests/fuzz/seeds/$target"/* "$work/seeds/" && [ "$what" = planted ] && whole=0
# Files below so many kB: what is long is mutated slowly.
small() { local below=$1; shift; find "$@" -size "-$below"k -print0; }
case $target$whole in
  safetensors1) small 9 tests/runtime/checkpoint/cases/st examples/*/fixtures -name '*.safetensors' ;;
  gguf1) small 9 tests/runtime/checkpoint/cases/gguf examples/*/fixtures tests/runtime/checkpoint/cases/package.gguf -name '*.gguf' ;;
  shards1) small 17 tests/runtime/checkpoint/cases examples/*/fixtures -name '*.index.json' ;;
  adapter1) small 9 tests/runtime/checkpoint/adapters -name adapter_config.json ;;
  *) true ;;
esac | while IFS= read -r -d '' file; do cp "$file" "$work/seeds/$(echo "$file" | tr / -)"; done
if [ $whole = 0 ]; then
  true
elif [ "$target" = config ]; then
  number=0                                                 # as `models` of config.cpp has it
  for model in llama qwen3_moe gemma3_text qwen2 bert; do
    for config in examples/$model/fixtures/*/config.json; do
      { printf '%d' $number; cat "$config"; } > "$work/seeds/$model-$(basename "$(dirname "$config")").seed"
    done
    number=$((number + 1))
  done
elif [ "$target" = tokenizer ]; then
  python3 tests/fuzz/tokenizer_seeds.py "$work/seeds"
elif [ "$target" = gguf_tokenizer ]; then
  python3 tests/fuzz/gguf_tokenizer_seeds.py "$work/seeds"
elif [ "$target" = chat ]; then
  python3 - "$work/seeds" << 'END'
import json, pathlib, sys
for name, key in (("templates", "templates"), ("language", "cases")):
    file = json.loads(pathlib.Path(f"tests/runtime/chat/cases/{name}.json").read_text())
    for i, row in enumerate(file[key]):
        pathlib.Path(sys.argv[1], f"{name}-{i}.seed").write_text(row["template"])
END
fi

if [ "$what" = keep ]; then
  # The smallest set of inputs with the corpus's reach that the committed seeds have not: to look at, and to commit a few of.
  mkdir -p "$work/kept"
  "$fuzzer" -merge=1 "$work/kept" "$work/seeds" "$work/corpus" > /dev/null 2>&1
  du -sh "$work/kept"
  exit 0
fi

minutes=$what
[ "$what" = planted ] && minutes=${3:-10}
status=0
cd "$work"
LLVM_PROFILE_FILE=$work/fuzz.profraw nice -n "${MODELC_FUZZ_NICE:-10}" "$fuzzer" corpus seeds -dict="$root/tests/fuzz/words/$target.dict" \
  -max_total_time=$((minutes * 60)) -max_len="$longest" -timeout=60 -rss_limit_mb=3000 -print_final_stats=1 -artifact_prefix="$work/" > log 2>&1 || status=$?
tail -n 12 log
if [ "$what" = planted ]; then
  if [ $status -ne 0 ]; then echo "the fault planted in $target was found"; exit 0; fi
  echo "the fault planted in $target was not found in $minutes minutes"
  exit 1
fi
LLVM_PROFILE_FILE=$work/reached.profraw "$fuzzer" corpus seeds -runs=0 > /dev/null 2>&1 || true
"llvm-profdata$version" merge -o reached.profdata reached.profraw
echo "lines of the parsers that $target reaches (all, missed, reached):"
cd "$root"
"llvm-cov$version" report "$fuzzer" -instr-profile="$work/reached.profdata" $(for p in $parsers; do echo "$root/$p"; done) |
  awk '/\.cpp/ || /^TOTAL/ { print "  " $1, $8, $9, $10 }'
exit $status
