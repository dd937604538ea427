#!/usr/bin/env bash
# Fuzzes the compiler: README.md here. Needs clang with its sanitizers (Debian: clang-16, libclang-rt-16-dev, llvm-16).
set -euo pipefail
cd "$(dirname "$0")/../.."
what=${1:-30}
build=${MODELC_FUZZ_BUILD:-build-fuzz}
version=${MODELC_FUZZ_CLANG:--16}
target=fuzz_compiler
[ "$what" = planted ] && target=fuzz_compiler_planted

[ -f "$build/build.ninja" ] || cmake -S . -B "$build" -G Ninja -DMODELC_FUZZ=ON -DMODELC_WERROR=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_COMPILER="clang++$version"
ninja -C "$build" -j "${MODELC_FUZZ_JOBS:-2}" $target
fuzzer=$PWD/$build/tests/fuzz/$target

if [ "$what" = one ]; then
  exec "$fuzzer" "$2"
fi

work=$PWD/$build/fuzz
[ "$what" = planted ] && work=$work-planted
corpus=$work/corpus
mkdir -p "$corpus"
if [ "$what" = planted ]; then cp tests/fuzz/seeds/arithmetic.seed "$corpus/"; else cp tests/fuzz/seeds/*.seed "$corpus/"; fi
# Every model file (the planted fault is looked for in the small seeds alone), each with the configurations beside it.
[ "$what" = planted ] || while read -r model; do
  name=$(basename "$model" .model)
  cp "$model" "$corpus/$name.seed"
  for config in "$(dirname "$model")"/fixtures/*/config.json; do
    [ -f "$config" ] || continue
    { cat "$model"; printf '\n%%%%%%\n'; cat "$config"; } > "$corpus/$name-$(basename "$(dirname "$config")").seed"
  done
done < <(find examples stdlib tests/frontend -name '*.model')
# The grammar's words and signs.
grep -oE "'[^' ]+'" grammar/Model.g4 | sort -u | sed "s/^'\(.*\)'$/\"\1\"/; s/\\\\\\\\/\\\\\\\\/" | grep -v '[\\]' > "$work/words.dict"

printf '"0"\n"1"\n"-1"\n"65536"\n"9223372036854775807"\n' >> "$work/words.dict"

cd "$work"
status=0
minutes=$what
[ "$what" = planted ] && minutes=${2:-10}
LLVM_PROFILE_FILE=$work/fuzz.profraw nice -n ${MODELC_FUZZ_NICE:-10} "$fuzzer" "$corpus" -dict="$work/words.dict" -max_total_time=$((minutes * 60)) \
  -max_len=20000 -timeout=60 -rss_limit_mb=3000 -print_final_stats=1 -artifact_prefix="$work/" > "$work/log" 2>&1 || status=$?
tail -n 15 "$work/log"

if [ "$what" = planted ]; then
  if [ $status -ne 0 ] && grep -q "division by zero" "$work/log"; then echo "the planted fault was found"; exit 0; fi
  echo "the planted fault was not found in $minutes minutes"
  exit 1
fi
LLVM_PROFILE_FILE=$work/corpus.profraw "$fuzzer" "$corpus" -runs=0 > /dev/null 2>&1 || true
"llvm-profdata$version" merge -o "$work/all.profdata" "$work/corpus.profraw"
echo "lines of frontend/ that the corpus reaches (the reference evaluator, which needs weights, aside):"
"llvm-cov$version" report "$fuzzer" -instr-profile="$work/all.profdata" -ignore-filename-regex='/(runtime|codegen|tests|grammar|eval)/|/usr/' |
  awk 'NR == 1 || /^TOTAL/ { print } NR > 2 && $10 + 0 < 60 && !/^-/ { print }' | cut -c1-220
exit $status
