#include "runtime/device/batch.h"

#include <algorithm>
#include <limits>

#include "runtime/base/strings.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc {
namespace {

constexpr std::int64_t most_tokens = std::numeric_limits<std::int32_t>::max();

// One segment's rows, at the end of the batch.
void add(Batch& b, std::int64_t slot, std::int64_t begin, std::int64_t tokens) {
  const auto segment = static_cast<std::int32_t>(b.slots.size());
  for (std::int64_t i = 0; i < tokens; ++i) {
    b.positions.push_back(static_cast<std::int32_t>(begin + i));
    b.lengths.push_back(static_cast<std::int32_t>(begin + tokens));
    b.sequence.push_back(segment);
  }
  b.slots.push_back(static_cast<std::int32_t>(slot));
  b.last.push_back(static_cast<std::int32_t>(b.tokens() - 1));
  b.starts.push_back(static_cast<std::int32_t>(b.tokens()));
}

void choose_outputs(Batch& b, Outputs outputs) {
  if (outputs == Outputs::last) {
    b.outputs = b.last;
    return;
  }
  b.outputs.resize(b.positions.size());
  for (std::size_t i = 0; i < b.outputs.size(); ++i) b.outputs[i] = static_cast<std::int32_t>(i);
}

Error no_tokens(std::int64_t sequence, std::int64_t tokens) {
  return {"batch",
          "sequence " + std::to_string(sequence) + " comes with " + std::to_string(tokens) + " tokens",
          {},
          "a sequence without new tokens is left out of the batch"};
}

// The sequences that a batch has named.
class Names {
 public:
  explicit Names(const State& state) : named_(static_cast<std::size_t>(state.sequences()), false) {}
  Status take(int slot, const char* help) {
    if (slot < 0 || static_cast<std::size_t>(slot) >= named_.size())
      return Error{"batch",
                   "sequence " + std::to_string(slot) + " is not in the state, which has " + counted(named_.size(), "slot") + ", from 0",
                   {},
                   "StateOptions::sequences says how many a state gets"};
    auto was_named = named_[static_cast<std::size_t>(slot)];
    if (was_named) return Error{"batch", "sequence " + std::to_string(slot) + " is named twice in one batch", {}, help};
    was_named = true;
    return {};
  }

 private:
  std::vector<bool> named_;
};

}  // namespace

Result<Sequences> Sequences::make(const State& state, std::span<const int> slots) {
  Sequences s;
  if (slots.empty()) return Error{"batch", "a call of no sequences", {}, "name at least one"};
  Names names(state);
  for (const int slot : slots) {
    if (Status status = names.take(slot, "name each once"); !status) return std::move(status.error());
    s.slots.push_back(slot);
  }
  return s;
}

Result<Batch> Batch::make(const State& state, std::span<const Segment> segments, Outputs outputs) {
  Batch b;
  b.starts.push_back(0);
  if (segments.empty()) return Error{"batch", "a batch of no sequences", {}, "name at least one segment"};
  Names names(state);
  std::int64_t total = 0;
  for (const Segment& s : segments) {
    if (Status status = names.take(s.sequence, "give all its new tokens in one segment"); !status) return std::move(status.error());
    if (s.tokens < 1) return no_tokens(s.sequence, s.tokens);
    const std::int64_t held = state.length(s.sequence);
    if (s.tokens > state.capacity() - held)
      return Error{"context",
                   "sequence " + std::to_string(s.sequence) + " holds " + grouped(held) + " positions; with " +
                       counted(static_cast<std::uint64_t>(s.tokens), "new token") + " it passes the " + grouped(state.capacity()) +
                       " that the state has room for",
                   {},
                   "clear or truncate the sequence, or make a state of larger capacity if the model's context allows"};
    total += s.tokens;
    if (total > most_tokens)
      return Error{"batch", "a batch of more than " + grouped(most_tokens) + " tokens", {}, "split it into several calls"};
    add(b, s.sequence, held, s.tokens);
  }
  choose_outputs(b, outputs);
  return b;
}

Result<Batch> Batch::make(std::span<const std::int64_t> tokens_of_each, Outputs outputs) {
  Batch b;
  b.starts.push_back(0);
  if (tokens_of_each.empty()) return Error{"batch", "a batch of no sequences", {}, "name at least one"};
  std::int64_t total = 0;
  for (std::size_t i = 0; i < tokens_of_each.size(); ++i) {
    const std::int64_t n = tokens_of_each[i];
    if (n < 1) return no_tokens(static_cast<std::int64_t>(i), n);
    if (n > most_tokens - total)
      return Error{"batch", "a batch of more than " + grouped(most_tokens) + " tokens", {}, "split it into several calls"};
    total += n;
    add(b, static_cast<std::int64_t>(i), 0, n);
  }
  choose_outputs(b, outputs);
  return b;
}

}  // namespace modelc
