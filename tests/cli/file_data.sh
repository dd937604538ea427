#!/usr/bin/env bash
# What is done with numbers that a file says: nothing is asserted of them, and no product of them is taken that may wrap.
source "$(dirname "$0")/lib.sh"

# An assert is gone in a Release build, and a file can make it fail in another. Those that are here are about callers.
callers='tensor\.file < slots_|file < slots_|!mapping\.problems\.empty|options\.max_(depth|bytes)|i < size\(\)|!contains\(key\)|at \+ sizeof value|members_\.size\(\) < std::numeric_limits'
found=$(grep -rnE '\b(assert|abort|std::terminate)\(' runtime/checkpoint runtime/base/json*.cpp runtime/base/metadata.cpp runtime/base/mapped_file.cpp runtime/tokenizer runtime/chat \
  --include='*.cpp' --include='*.h' | grep -v static_assert | grep -vE "$callers")
[ -z "$found" ] && pass "nothing is asserted of what a file says" || fail "asserts on what a file may say" "$found"

# Where headers are read a product stands for itself only where the line says what bounds it; the others are made by
# element_count, stored_bytes and the overflow builtins.
readers='runtime/checkpoint/safetensors/reader.cpp runtime/checkpoint/safetensors/members.cpp runtime/checkpoint/safetensors/shards.cpp runtime/checkpoint/gguf/reader.cpp
runtime/checkpoint/gguf/parts.cpp runtime/checkpoint/open.cpp runtime/checkpoint/index.cpp runtime/checkpoint/adapter_config.cpp'
# shellcheck disable=SC2086
found=$(grep -nE '[])A-Za-z0-9_] \* [(A-Za-z0-9_]' $readers | grep -vE ':[0-9]+: *//' | grep -vE '(const|auto) [A-Za-z:]+ \* *[a-z]' | grep -v '// bounded:')
[ -z "$found" ] && pass "no unchecked product of what a header says" || fail "a product that may wrap" "$found"
# shellcheck disable=SC2086
found=$(grep -nE 'reinterpret_cast<const (std::)?(u?int(16|32|64)_t|float|double)' $readers runtime/checkpoint/*.cpp)
[ -z "$found" ] && pass "no typed pointer into a file" || fail "a typed pointer into a file" "$found"

# ---- inspect: 0 for each good file, 1 for each bad one, as the cases' lists say
for folder in tests/runtime/checkpoint/cases ${MODELC_CHECKPOINT_CASES:-}; do
  wrong="" files=0
  while IFS=$'\t' read -r file _ verdict _; do
    case $verdict in ok) wanted=0 ;; reject:*) wanted=1 ;; *) continue ;; esac
    files=$((files + 1))
    "$modelc" inspect "$folder/$file" > "$work/said" 2>&1
    status=$?
    [ $status -eq $wanted ] || wrong="$wrong $file ($status)"
    if [ $wanted = 1 ]; then
      kind=$("$modelc" inspect "$folder/$file" --json 2> /dev/null)
      grep -qF "\"kind\":\"${verdict#reject:}\"" <<< "$kind" || wrong="$wrong $file (--json: $kind)"
    fi
  done < "$folder/MANIFEST.tsv"
  [ -z "$wrong" ] && [ $files -gt 10 ] && pass "inspect says of $files files of $folder what they are" || fail "inspect of $folder" "$wrong"
done
finish
