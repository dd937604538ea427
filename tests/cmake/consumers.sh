#!/usr/bin/env bash
# modelc inside other people's builds: installed and moved, as a subfolder, under Ninja and Make; what is rebuilt when a
# file is touched; which mistakes stop what; pkg-config.
source "$(dirname "$0")/../cli/lib.sh"

source=$PWD
unset MODELC_EXECUTABLE CXXFLAGS CMAKE_GENERATOR
cmake --install "$build_folder" --prefix "$work/prefix" > "$work/log" 2>&1 || fail "cmake --install" "$(cat "$work/log")"
mv "$work/prefix" "$work/moved"
prefix=$work/moved
export CMAKE_PREFIX_PATH=$prefix

# A project of two models in one program (one of them twice), and the stock main.
app=$work/app
mkdir "$app"
cp examples/llama/llama.model examples/qwen2/qwen2.model "$app/"
cp -r examples/tiny "$app/"
cp examples/qwen2/fixtures/qwen2-tiny/config.json "$app/qwen2.json"
mkdir "$app/parts"
cat > "$app/parts/scale.model" <<'M'
language 1
/// y = factor x
module Scale(factor: float) { forward(x: [...]) -> [...] { return x * factor } }
M
cat > "$app/small.model" <<'M'
language 1
import parts.scale
config SmallConfig { width: dim  factor: float }
model Small(c: SmallConfig) {
    scale: Scale(c.factor)
    forward(x: [tokens, c.width]) -> y: [tokens, c.width] { return scale(x) }
}
M
echo '{"width": 4, "factor": 2.5}' > "$app/small.json"
cat > "$app/main.cpp" <<'CPP'
#include <cstdio>

#include "llama.h"
#include "qwen2.h"
#include "second/models/llama.h"

int main(int argc, char** argv) {
  auto model = llama::Llama::load(argv[argc - 1]);
  auto again = second::models::Llama::load(argv[argc - 1]);
  auto other = qwen2::Qwen2::load(argv[argc - 1]);
  if (!model || !again) return std::fprintf(stderr, "%s\n", model.error().text().c_str()), 1;
  std::printf("%zu and %zu parameters; the other: %s\n", (*model)->parameters().size(), (*again)->parameters().size(),
              other ? "loads" : "refuses");
}
CPP
cat > "$app/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES CXX)
if(MODELC_SUBFOLDER)
  add_subdirectory(${MODELC_SUBFOLDER} modelc EXCLUDE_FROM_ALL)
else()
  find_package(modelc 0.1 REQUIRED)
endif()
modelc_add_library(models MODEL llama.model CONFIG tiny/config.json)
modelc_target_model(models MODEL llama.model CHECKPOINT tiny NAMESPACE second::models)
modelc_target_model(models MODEL qwen2.model CONFIG qwen2.json)
modelc_add_library(small MODEL small.model CONFIG small.json)
add_executable(app main.cpp)
target_link_libraries(app PRIVATE models)
modelc_add_executable(writer MODEL llama.model CONFIG tiny/config.json)
C
configure() { cmake -S "$app" -B "$1" -G "$2" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-O0 "${@:3}"; }
for generator in Ninja "Unix Makefiles"; do
  b="$work/build ${generator%% *}"                       # with a space in its name
  expect "$generator: find_package from a moved installation" 0 -- configure "$b" "$generator"
  expect "$generator: builds" 0 -- cmake --build "$b"
  expect "$generator: three models in one program" 0 "and" "refuses" -- "$b/app" "$app/tiny"
  expect "$generator: the stock main" 0 "It is a truth" -- "$b/writer" --checkpoint "$app/tiny" --prompt "It is a truth" -n 4
done

# Rebuilds. What ran is read off what the tools print.
for generator in Ninja "Unix Makefiles"; do
  b="$work/build ${generator%% *}"
  again() { cmake --build "$b" --verbose 2>&1; }
  # Neither modelc nor a compiler; Make's own bookkeeping aside.
  ran() { grep -cE "modelc(\"|') build|modelc build| -c " || true; }
  again > /dev/null
  n=$(again | ran)
  [ "$n" = 0 ] && pass "$generator: nothing touched, nothing runs" || fail "$generator: nothing touched, nothing runs" "$n commands"
  sleep 1.1; touch "$app/parts/scale.model"
  out=$(again); n=$(echo "$out" | ran)
  [ "$n" = 1 ] && echo "$out" | grep -q "small.model" && pass "$generator: a touched import generates its model alone, and compiles nothing" ||
    fail "$generator: a touched import" "$n commands
$out"
  n=$(again | ran)
  [ "$n" = 0 ] && pass "$generator: and then nothing" || fail "$generator: and then nothing" "$n commands"
  sleep 1.1; sed -i 's/x \* factor/factor * x/' "$app/parts/scale.model"
  out=$(again)
  echo "$out" | grep -q "small.cpp" && ! echo "$out" | grep -q "llama.cpp" && pass "$generator: a changed import compiles what depends on it alone" ||
    fail "$generator: a changed import" "$out"
  sleep 1.1; touch "$prefix/share/modelc/stdlib/nn/norm.model"
  out=$(again)
  echo "$out" | grep -q "qwen2.model" && ! echo "$out" | grep -qE "modelc['\"]? build .*small.model" && pass "$generator: the standard library is tracked" ||
    fail "$generator: the standard library is tracked" "$out"
  # A mistake in an import: the message names the place in the file, and the build fails until it is mended.
  cp "$app/parts/scale.model" "$work/kept"
  sleep 1.1; sed -i 's/factor \* x/factr * x/' "$app/parts/scale.model"
  expect "$generator: a mistake is told with its place" 2 "$app/parts/scale.model:3:" "factr" -- bash -c "cmake --build \"$b\" --target small; test \$? -ne 0 && exit 2"
  expect "$generator: and again, since nothing stale is taken" 2 "factr" -- bash -c "cmake --build \"$b\" --target small; test \$? -ne 0 && exit 2"
  sleep 1.1; cp "$work/kept" "$app/parts/scale.model"
  expect "$generator: mended" 0 -- cmake --build "$b"
  sed -i 's/factor \* x/x * factor/' "$app/parts/scale.model"
  cmake --build "$b" > /dev/null 2>&1
done

# Mistakes in the call.
bad() {
  local name=$1 text=$2 call=$3
  mkdir -p "$work/bad"; cp "$app/llama.model" "$work/bad/"; cp "$app/tiny/config.json" "$work/bad/"
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(bad LANGUAGES CXX)\nfind_package(modelc REQUIRED)\n%s\n' "$call" > "$work/bad/CMakeLists.txt"
  expect "$name" 1 "$text" -- cmake -S "$work/bad" -B "$work/bad/build" -G Ninja "${@:4}"
  rm -rf "$work/bad/build"
}
bad "a config that is not there stops the configuration" "CONFIG" "modelc_add_library(m MODEL llama.model CONFIG absent.json)"
bad "a model that is not there" "absent.model does not" "modelc_add_library(m MODEL absent.model CONFIG config.json)"
bad "no configuration" "CONFIG is missing" "modelc_add_library(m MODEL llama.model)"
bad "a misspelt argument" "unknown argument CONFG" "modelc_add_library(m MODEL llama.model CONFG config.json)"
bad "one model twice without a namespace" "stands in this target already" \
  "modelc_add_library(m MODEL llama.model CONFIG config.json)
modelc_target_model(m MODEL llama.model CONFIG config.json)"
mv "$prefix/bin/modelc" "$work/away"
bad "a missing tool stops the configuration" "modelc" "modelc_add_library(m MODEL llama.model CONFIG config.json)"
mv "$work/away" "$prefix/bin/modelc"
bad "a cross build without a host program" "MODELC_EXECUTABLE" "modelc_add_library(m MODEL llama.model CONFIG config.json)" \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64

# pkg-config for who builds by hand.
export PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name modelc-runtime.pc)")
"$prefix/bin/modelc" build "$app/llama.model" --config "$app/tiny/config.json" -o "$work/hand" > /dev/null
printf '#include "llama.h"\n#include <cstdio>\nint main(int, char** v) { auto m = llama::Llama::load(v[1]); std::puts(m ? "loaded" : m.error().text().c_str()); }\n' > "$work/hand/own.cpp"
expect "pkg-config: compiles" 0 -- bash -c "${CXX:-c++} \$(pkg-config --cflags modelc-runtime) -O0 -ffp-contract=off '$work/hand/own.cpp' '$work/hand/llama.cpp' \$(pkg-config --libs modelc-runtime) -o '$work/hand/own'"
expect "pkg-config: runs" 0 "loaded" -- "$work/hand/own" "$app/tiny"

# As a subfolder, the way FetchContent takes a local folder too. Building the compiler once more takes minutes: asked for.
expect "add_subdirectory: configures" 0 -- configure "$work/sub" Ninja "-DMODELC_SUBFOLDER=$source"
if [ -n "${MODELC_HEAVY:-}" ]; then
  expect "add_subdirectory: builds" 0 -- cmake --build "$work/sub" --target writer
  expect "add_subdirectory: runs" 0 "It is a truth" -- "$work/sub/writer" --checkpoint "$app/tiny" --prompt "It is a truth" -n 4
else
  skip "add_subdirectory: the build (MODELC_HEAVY=1 runs it)"
fi
finish
