#!/usr/bin/env bash
# Whether every C and C++ file has the layout of .clang-format. Usage: bash tests/format.sh [--fix]      Needs clang-format-16.
set -euo pipefail
cd "$(dirname "$0")/.."
format=${CLANG_FORMAT:-clang-format-16}
command -v "$format" > /dev/null || { echo "FAILED  $format is missing (apt-get install clang-format-16)" >&2; exit 1; }
# New files too, before they are added.
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.cpp' '*.h' '*.c' | while read -r f; do [ ! -f "$f" ] || echo "$f"; done)
[ ${#files[@]} -gt 100 ] || { echo "FAILED  only ${#files[@]} files found: is this the repository?" >&2; exit 1; }
if [ "${1:-}" = --fix ]; then
  printf '%s\0' "${files[@]}" | xargs -0 -n 20 "$format" -i
  echo "${#files[@]} files written in their layout"
elif printf '%s\0' "${files[@]}" | xargs -0 -n 20 "$format" --dry-run -Werror; then
  echo "${#files[@]} files, all in their layout"
else
  echo "FAILED  bash tests/format.sh --fix writes them anew" >&2
  exit 1
fi
