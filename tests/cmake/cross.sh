#!/usr/bin/env bash
# A program for aarch64, built here with Debian's cross compiler and run under qemu-user: the same text as on this machine.
# Needs g++-aarch64-linux-gnu, qemu-user and file; takes the libraries of that architecture with `apt-get download`, with lists and a
# folder of its own: this machine's packages stay as they are. Usage: bash tests/cmake/cross.sh MODELC BUILD_FOLDER
source "$(dirname "$0")/../cli/lib.sh"

for program in aarch64-linux-gnu-g++ qemu-aarch64 file; do
  if ! command -v $program > /dev/null; then
    fail "$program is not installed" "apt-get install g++-aarch64-linux-gnu qemu-user file"
    finish; exit
  fi
done
source=$PWD
mkdir "$work/debs" "$work/sysroot"
mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial"
: > "$work/apt/status"
foreign=(-o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o "Dir::State::lists=$work/apt/lists" -o "Dir::State::status=$work/apt/status"
         -o "Dir::Cache=$work/apt" -o APT::Sandbox::User=root)
(cd "$work/debs" && apt-get "${foreign[@]}" update -q &&
  apt-get "${foreign[@]}" download -q libpcre2-dev libpcre2-8-0 libutf8proc-dev libutf8proc2 libsimdjson-dev libsimdjson14) > "$work/log" 2>&1 ||
  { fail "the libraries of aarch64" "$(cat "$work/log")"; finish; exit 1; }
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/sysroot"; done

app=$work/app
mkdir "$app"
cp examples/llama/llama.model "$app/"
cat > "$app/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES CXX)
set(MODELC_PARTS runtime)
add_subdirectory(${MODELC_SUBFOLDER} modelc EXCLUDE_FROM_ALL)
modelc_add_executable(writer MODEL llama.model CONFIG ${MODELC_SUBFOLDER}/examples/tiny/config.json)
C
cat > "$work/aarch64.cmake" <<C
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH $work/sysroot/usr /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
C
export PKG_CONFIG_LIBDIR=$work/sysroot/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/sysroot
expect "configures" 0 -- cmake -S "$app" -B "$work/cross" -G Ninja "-DCMAKE_TOOLCHAIN_FILE=$work/aarch64.cmake" \
  -DCMAKE_BUILD_TYPE=Release "-DMODELC_SUBFOLDER=$source" "-DMODELC_EXECUTABLE=$modelc"
expect "builds" 0 -- cmake --build "$work/cross" --target writer
unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
expect "it is a program for aarch64" 0 "aarch64" -- file "$work/cross/writer"
prompt="It is a truth universally"
here=$("$modelc" run examples/llama/llama.model --checkpoint examples/tiny --prompt "$prompt" -n 32 2> /dev/null)
there=$(qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$work/sysroot/usr/lib/aarch64-linux-gnu" \
  "$work/cross/writer" --checkpoint examples/tiny --prompt "$prompt" -n 32 2> /dev/null)
[ -n "$here" ] && [ "$here" = "$there" ] && pass "the same text: $here" || fail "the same text" "here: $here
there: $there"
finish
