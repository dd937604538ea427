#!/usr/bin/env bash
# A generated model inside programs of other languages: examples/embed with an installed modelc, in C and in Python; two models
# in one program in C; what is printed is what the programs print.
source "$(dirname "$0")/../cli/lib.sh"

unset MODELC_EXECUTABLE CXXFLAGS CFLAGS CMAKE_GENERATOR
cmake --install "$build_folder" --prefix "$work/prefix" > "$work/log" 2>&1 || fail "cmake --install" "$(cat "$work/log")"
export CMAKE_PREFIX_PATH=$work/prefix
build=$work/embed
expect "examples/embed configures" 0 -- cmake -S examples/embed -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=-O0" \
  "-DCMAKE_C_FLAGS=-std=c99 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror"
expect "and builds" 0 -- cmake --build "$build"

prompt="It is a truth"
text=$("$modelc" run examples/llama/llama.model --checkpoint examples/tiny --prompt "$prompt" -n 20 2> /dev/null)
out=$("$build/generate" examples/tiny "$prompt" 20 2> "$work/err")
[ -n "$text" ] && [ "$out" = "$text" ] && pass "C: the text that modelc run writes" || fail "C: the text that modelc run writes" "run: $text
C: $out
$(cat "$work/err")"
# The two lines of generate.c, and nothing of the library.
[ "$(wc -l < "$work/err")" = 2 ] && pass "C: the library prints nothing" || fail "C: the library prints nothing" "$(cat "$work/err")"
expect "C: an error is a value with its text" 1 "error: " "/nowhere" -- "$build/generate" /nowhere "$prompt"
out=$(python3 examples/embed/generate.py "$build/libllama.so" examples/tiny "$prompt" 20 2> "$work/err")
[ "$out" = "$text" ] && pass "Python: the same text" || fail "Python: the same text" "$out
$(cat "$work/err")"
[ "$(wc -l < "$work/err")" = 1 ] && pass "Python: the library prints nothing" || fail "Python: the library prints nothing" "$(cat "$work/err")"
expect "Python: an error is an exception" 1 "error: " "/nowhere" -- python3 examples/embed/generate.py "$build/libllama.so" /nowhere "$prompt"
expect "Python: a callback ends the text, and what it raises comes back" 0 "stopped after 1" "raised: of its own" -- python3 - "$build/libllama.so" "$prompt" <<'P'
import sys
sys.path.insert(0, "examples/embed")
import generate
model = generate.Model(generate.Library(sys.argv[1]), "llama_model_type", "examples/tiny")
pieces = []
model.generate(sys.argv[2], 20, lambda piece: (pieces.append(piece), False)[1])
print("stopped after", len(pieces))
def wrong(piece): raise ValueError("of its own")
try: model.generate(sys.argv[2], 20, wrong)
except ValueError as e: print("raised:", e)
P

# Two classes and two namespaces in one program in C.
two=$work/two
mkdir "$two"
cp examples/llama/llama.model "$two/"
cat > "$two/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.25)
project(two LANGUAGES C CXX)
find_package(modelc REQUIRED)
modelc_add_library(models MODEL llama.model CONFIG one.json C_API)
modelc_target_model(models MODEL llama.model CONFIG two.json NAMESPACE acme::v2 CLASS Other C_API)
add_executable(app main.c)
target_link_libraries(app PRIVATE models)
C
cp examples/tiny/config.json "$two/one.json"
cp examples/tiny/config.json "$two/two.json"
cat > "$two/main.c" <<'C'
#include <stdio.h>
#include <string.h>

#include "acme/v2/llama_c.h"
#include "llama_c.h"

int main(int argc, char** argv) {
  const modelc_model_type* types[] = {llama_model_type(), acme_v2_other_model_type()};
  modelc_model* models[2] = {NULL, NULL};
  modelc_session* sessions[2] = {NULL, NULL};
  float logits[2][65536];
  size_t count = 0;
  const int32_t ids[] = {1, 2, 3};
  int i;
  if (argc != 2) return 2;
  for (i = 0; i < 2; ++i) {
    modelc_model_info info = MODELC_INIT(modelc_model_info);
    if (modelc_load(types[i], argv[1], NULL, &models[i], NULL) != MODELC_OK) return 1;
    if (modelc_describe(models[i], &info, NULL) != MODELC_OK) return 1;
    printf("%s ", info.name);
    if (modelc_session_new(models[i], 0, &sessions[i], NULL) != MODELC_OK) return 1;
    if (modelc_logits(sessions[i], ids, 3, logits[i], 65536, &count, NULL) != MODELC_OK) return 1;
  }
  puts(memcmp(logits[0], logits[1], count * sizeof(float)) == 0 ? "agree" : "differ");
  for (i = 0; i < 2; ++i) {
    modelc_model_free(models[i]);
    modelc_session_free(sessions[i]);
  }
  return 0;
}
C
expect "two models in one program: configures" 0 -- cmake -S "$two" -B "$two/build" -G Ninja "-DCMAKE_CXX_FLAGS=-O0" "-DCMAKE_C_FLAGS=-std=c99 -Wall -Wextra -Wpedantic -Werror"
expect "two models in one program: builds" 0 -- cmake --build "$two/build"
expect "two models in one program: runs" 0 "Llama Other agree" -- "$two/build/app" examples/tiny
finish
