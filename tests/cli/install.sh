#!/usr/bin/env bash
# An installed modelc stands alone: another prefix, another folder, no source tree in sight.
source "$(dirname "$0")/lib.sh"

source=$PWD
cmake --install "$build_folder" --prefix "$work/prefix" > "$work/log" 2>&1 || fail "cmake --install" "$(cat "$work/log")"
mv "$work/prefix" "$work/moved"
installed=$work/moved/bin/modelc
cp -r examples/llama/llama.model examples/tiny "$work/"
cd "$work" || exit 1
expect "version" 0 "modelc " -- "$installed" --version
expect "check finds the standard library beside the program" 0 "Llama:" -- "$installed" check llama.model --checkpoint tiny
"$installed" build llama.model --checkpoint tiny -o out --depfile out/d > /dev/null 2>&1
grep -q "$work/moved/share/modelc/stdlib" out/d && pass "it is the installed one" || fail "it is the installed one" "$(cat out/d 2>&1)"
expect "run links the installed runtime" 0 "tokens/s" -- env MODELC_CACHE="$work/cache" "$installed" run llama.model --checkpoint tiny --prompt "It is" -n 4
# A program of one's own on the generated class, compiled by hand.
cat > own.cpp <<'CPP'
#include <cstdio>
#include "out/llama.h"
int main() {
  auto model = llama::Llama::load("tiny");
  if (!model) return std::fprintf(stderr, "%s\n", model.error().text().c_str()), 1;
  auto state = (*model)->new_state();
  const modelc::Segment segment{0, 3};
  auto batch = modelc::Batch::make(**state, {&segment, 1}, modelc::Outputs::last);
  const int ids[] = {0, 1, 2};
  auto logits = (*model)->forward(**state, ids, *batch);
  if (!logits) return std::fprintf(stderr, "%s\n", logits.error().text().c_str()), 1;
  std::printf("%zu logits, %zu parameters\n", logits->size(), (*model)->parameters().size());
}
CPP
lib=$(dirname "$(find "$work/moved" -name libmodelc_runtime.a)")
expect "a program of one's own compiles" 0 -- "${CXX:-c++}" -std=c++20 -O1 -ffp-contract=off -I"$work/moved/include/modelc" own.cpp out/llama.cpp \
  "$lib/libmodelc_runtime.a" -lpcre2-8 -lutf8proc -lsimdjson -pthread -o own
expect "and runs" 0 "2048 logits" -- ./own
expect "the example's main compiles" 0 -- "${CXX:-c++}" -std=c++20 -O1 -ffp-contract=off -Wall -Wextra -Werror -I"$work/moved/include/modelc" -Iout \
  "$source/examples/llama/main.cpp" out/llama.cpp "$lib/libmodelc_runtime.a" -lpcre2-8 -lutf8proc -lsimdjson -pthread -o writer
expect "and writes" 0 "It is a truth" -- ./writer tiny "It is a truth"
rm "$lib/libmodelc_runtime.a"
expect "without the runtime library" 1 "error[E0609]" "cmake --install" -- "$installed" run llama.model --checkpoint tiny --prompt "It is" -n 4
finish
