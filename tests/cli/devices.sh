#!/usr/bin/env bash
# What `devices` says of memory and of a model: figures of a check and of loads, and the conclusion, with the text to paste.
source "$(dirname "$0")/lib.sh"

llama=examples/llama/llama.model
tiny=examples/tiny
figure() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"; }        # of one line of JSON
fits() { "$modelc" devices $llama --checkpoint $tiny "$@" --json 2> "$work/log" | grep "\"name\":\"$device\""; }
same() { if [ -n "$2" ] && [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "$2 and $3"; fi; }

expect "memory, and what it has room for" 0 "memory: " " free: room for " "kept free" -- "$modelc" devices
free=$("$modelc" devices --json 2> "$work/log" | grep '"name":"cpu"' | figure free)
total=$(awk '/^MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
if [ "${free:-0}" -gt 0 ] && [ "$free" -le "$total" ]; then pass "free is a part of the machine's"; else fail "free is a part of the machine's" "$free of $total"; fi
expect "a model without a checkpoint" 2 "error[E0608]" "no checkpoint is given" -- "$modelc" devices $llama
expect "a checkpoint without a model" 2 "error[E0608]" "no model file" -- "$modelc" devices --checkpoint $tiny
expect "positions beyond the model's" 2 "error[E0608]" "context is 512" -- "$modelc" devices $llama --checkpoint $tiny -c 513
expect "a checkpoint with a layer too few" 1 "error[E0407]" "model.layers.5" -- "$modelc" devices $llama --checkpoint $tiny --set num_hidden_layers=6
expect "a checkpoint of another model" 1 "error[E0408]" "qwen3_moe" -- "$modelc" devices $llama --checkpoint examples/qwen3_moe/fixtures/qwen3-moe-each
expect "the whole model" 0 "it fits whole" "--device cpu" "512 positions" "512 tokens" -- "$modelc" devices $llama --checkpoint $tiny

# The weights of `check`'s line: 16-bit matrices, as they are stored, and a few vectors, which are held in f32.
file=$("$modelc" check $llama --checkpoint $tiny 2> "$work/log" | sed -n 's/.*, \([0-9.]* MB\) in 1 file.*/\1/p')
expect "weights as stored" 0 "weights $file, " -- "$modelc" devices $llama --checkpoint $tiny
for device in cpu vulkan:0; do
  fit=$(fits -c 300)
  [ -n "$fit" ] || { skip "SKIPPED: there is no $device"; continue; }
  "$modelc" bench $llama --checkpoint $tiny -p 16 -n 4 -r 1 -c 300 --device $device --json > "$work/bench" 2> "$work/log"
  same "$device: the state is what a load reserves" "$(figure states <<< "$fit")" "$(figure state_bytes < "$work/bench")"
  stored=$(figure weight_bytes < "$work/bench")
  held=$(figure weights <<< "$fit")
  if [ "${held:-0}" -ge "${stored:-1}" ] && [ "$held" -le $((stored + stored / 100)) ]; then pass "$device: the weights are what a load reads"
  else fail "$device: the weights are what a load reads" "$held and $stored"; fi
  same "$device: all together" "$(figure total <<< "$fit")" "$((held + $(figure states <<< "$fit") + $(figure activations <<< "$fit")))"
done

# So many positions that the machine does not hold them; on a GPU, that it holds those of some of the five layers.
room() { figure room <<< "$fit"; }
longer() { fits -c "$1" --set max_position_embeddings="$1"; }
device=cpu
fit=$(fits -c 100)
positions=$(($(room) * 100 / $(figure states <<< "$fit") * 2))                         # what others free meanwhile is less
case $(longer $positions) in *'"fits":"nothing"'*) pass "more than the machine has" ;; *) fail "more than the machine has" "$(longer $positions)" ;; esac
device=vulkan:0
fit=$(fits -c 100)
if [ -n "$fit" ]; then
  positions=$(($(room) * 100 / $(figure states <<< "$fit") * 3 / 2))                     # about three of five
  long=$(longer $positions)
  layers=$(figure elements <<< "$long")
  case $long in
    *"\"device\":\"model.layers[0..$layers]=vulkan:0,cpu\""*)
      if [ "$layers" -ge 1 ] && [ "$layers" -le 4 ] && [ "$(figure taken <<< "$long")" -le "$(figure room <<< "$long")" ]; then pass "some layers fit"
      else fail "some layers fit" "$long"; fi
      expect "and what to paste is said" 0 " of 5 elements of model.layers fit " "]=vulkan:0,cpu'" "the CPU would have " -- "$modelc" devices $llama \
        --checkpoint $tiny -c $positions --set max_position_embeddings=$positions ;;
    *"one piece of memory has at most"*) skip "SKIPPED: a cache of $positions positions is larger than one piece of this device's memory" ;;
    *) fail "some layers fit" "$long" ;;
  esac
fi
finish
