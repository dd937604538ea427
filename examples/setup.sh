#!/usr/bin/env bash
# Installs the Debian packages that modelc is built with, as far as they are missing, and says which.
# Usage: bash examples/setup.sh [--with clang] [--with vulkan-driver]      Needs: Debian 12 or later, and root or sudo when something is missing.
set -euo pipefail

packages=(g++ cmake ninja-build make ccache antlr4 libantlr4-runtime-dev uuid-dev pkg-config
          libyaml-cpp-dev libsimdjson-dev nlohmann-json3-dev libfmt-dev libcli11-dev libpcre2-dev libutf8proc-dev doctest-dev
          libvulkan-dev glslang-dev glslang-tools spirv-tools)   # glslang's CMake package names glslang-tools' program
while [ "${1:-}" = --with ]; do
  case "${2:-}" in
    clang) packages+=(clang-16) ;;
    # A Vulkan driver that needs no GPU, and the layer that checks how Vulkan is used.
    vulkan-driver) packages+=(mesa-vulkan-drivers vulkan-validationlayers) ;;
    *) echo "--with ${2:-}: expected clang or vulkan-driver" >&2; exit 2 ;;
  esac
  shift 2
done

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing with apt: ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "there is no apt-get here: install these (or what your system calls them) by hand" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "that needs root: run this as root, or install them by hand" >&2; exit 1; }
  sudo=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -q
"${sudo[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
