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
sed '/^import/d; /scale: /d; s/return scale(x)/return silu(x) * c.factor/; s/SmallConfig/ShadedConfig/; s/model Small/model Shaded/' "$app/small.model" > "$app/shaded.model"
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
if(MODELC_FETCHED)
  include(FetchContent)
  FetchContent_Declare(modelc SOURCE_DIR ${MODELC_FETCHED})
  FetchContent_MakeAvailable(modelc)
elseif(MODELC_SUBFOLDER)
  add_subdirectory(${MODELC_SUBFOLDER} modelc EXCLUDE_FROM_ALL)
else()
  find_package(modelc 0.1 REQUIRED)
endif()
modelc_add_library(models MODEL llama.model CONFIG tiny/config.json)
modelc_target_model(models MODEL llama.model CHECKPOINT tiny NAMESPACE second::models)
modelc_target_model(models MODEL qwen2.model CONFIG qwen2.json)
modelc_add_library(small MODEL small.model CONFIG small.json)
if(SHADERS)
  modelc_add_library(shaded OBJECT MODEL shaded.model CONFIG small.json BACKENDS cpu vulkan)
endif()
add_executable(app main.cpp)
target_link_libraries(app PRIVATE models)
modelc_add_executable(writer MODEL llama.model CONFIG tiny/config.json)
C
"$prefix/bin/modelc" --version | grep -q "^Vulkan not built" && shaders=OFF || shaders=ON
configure() { cmake "-DSHADERS=$shaders" -S "$app" -B "$1" -G "$2" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-O0 "${@:3}"; }
for generator in Ninja "Unix Makefiles"; do
  b="$work/build ${generator%% *}"                       # with a space in its name
  expect "$generator: find_package from a moved installation" 0 -- configure "$b" "$generator"
  expect "$generator: builds" 0 -- cmake --build "$b"
  expect "$generator: three models in one program" 0 "and" "refuses" -- "$b/app" "$app/tiny"
  expect "$generator: the stock main" 0 "It is a truth" -- "$b/writer" --checkpoint "$app/tiny" --prompt "It is a truth" -n 4
  if [ $shaders = ON ]; then
    [ -n "$(find "$b/shaded.modelc/shaders" -name '*.comp')" ] && [ -s "$b/shaded.modelc/shaded_shaders.h" ] && pass "$generator: shaders too" ||
      fail "$generator: shaders too" "$(find "$b/shaded.modelc")"
  else skip "shaders: this modelc was built without Vulkan"; fi
done

# Its help, as it has no manual.
writer=$work/build\ Ninja/writer
expect "the stock main's help" 0 "Llama from llama.model" "usage: $writer [COMMAND]" "verify" "--prompt TEXT" "--checkpoint PATH" -- "$writer" --help
expect "the help of its commands" 0 "bench: " "bench --checkpoint PATH [options]" "-p N" -- "$writer" bench --help
wide=$(for c in "" generate verify same bench info pack; do (cd "$work/build Ninja" && ./writer $c --help); done | LC_ALL=C.UTF-8 grep -E '^.{101}')
[ -z "$wide" ] && pass "it fits 100 columns" || fail "it fits 100 columns" "$wide"
expect "its version" 0 "Llama from llama.model, written by modelc 0." "simdjson " -- "$writer" --version
expect "a misspelt option of it" 2 "did you mean \`--prompt\`" "--help" -- "$writer" --checkpoint "$app/tiny" --promt a
expect "a misspelt command of it" 2 "did you mean \`bench\`" -- "$writer" bnech --checkpoint "$app/tiny"

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
  [ ! -e "$b/small.modelc/small.manifest.json" ] && pass "$generator: no stamp of the model before" || fail "$generator: no stamp of the model before"
  # An import that is gone is modelc's to tell, not the build system's.
  mv "$app/parts" "$app/gone"
  expect "$generator: an import that is gone" 2 "$app/small.model:2:" "parts.scale" -- bash -c "cmake --build \"$b\" --target small; test \$? -ne 0 && exit 2"
  mv "$app/gone" "$app/parts"
  sleep 1.1; cp "$work/kept" "$app/parts/scale.model"
  out=$(again)
  [ "$(echo "$out" | ran)" = 1 ] && echo "$out" | grep -q "small.model" && [ -e "$b/small.modelc/small.manifest.json" ] &&
    pass "$generator: mended, and nothing is compiled for nothing" || fail "$generator: mended, and nothing is compiled for nothing" "$out"
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

# As a subfolder, and fetched from a local folder. Building the compiler once more takes minutes: asked for.
expect "add_subdirectory: configures" 0 -- configure "$work/sub" Ninja "-DMODELC_SUBFOLDER=$source"
expect "FetchContent: configures" 0 -- configure "$work/fetched" Ninja "-DMODELC_FETCHED=$source"
if [ -n "${MODELC_HEAVY:-}" ]; then
  for way in sub fetched; do
    expect "$way: builds" 0 -- cmake --build "$work/$way" --target writer
    expect "$way: runs" 0 "It is a truth" -- "$work/$way/writer" --checkpoint "$app/tiny" --prompt "It is a truth" -n 4
  done
else
  skip "add_subdirectory, FetchContent: the builds (MODELC_HEAVY=1 runs them)"
fi
# The same with a modelc that is there already, as in a cross build: the runtime alone is built.
expect "FetchContent of the runtime: configures" 0 -- configure "$work/part" Ninja "-DMODELC_FETCHED=$source" -DMODELC_PARTS=runtime \
  "-DMODELC_EXECUTABLE=$prefix/bin/modelc" -DSHADERS=OFF
finish
