#include "frontend/graph/eval/batch.h"

#include <set>

namespace modelc::graph::eval {

const std::vector<std::int64_t>* Batch::field(std::string_view name) const {
  if (name == "positions") return &positions;
  if (name == "lengths") return &lengths;
  if (name == "sequence") return &sequence;
  if (name == "outputs") return &outputs;
  if (name == "last") return &last;
  return nullptr;
}

Result<Batch> make_batch(std::vector<Segment> segments, Outputs outputs, std::optional<std::int64_t> context) {
  constexpr std::int64_t most = 1 << 20;                                      // tokens of one call
  auto refuse = [](std::string message) { return Error{"batch", std::move(message), {}, ""}; };
  if (segments.empty()) return refuse("a batch needs at least one sequence");
  Batch b;
  std::set<std::int64_t> slots;
  std::int64_t row = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const Segment& g = segments[s];
    const std::string slot = "slot " + std::to_string(g.slot);
    if (!slots.insert(g.slot).second) return refuse(slot + " is there twice");
    if (g.tokens < 1) return refuse(slot + " has no new token");
    if (g.tokens > most - row || g.start < 0 || g.start > most) return refuse("the batch is too long");
    if (context && g.start + g.tokens > *context)
      return refuse(slot + " would have " + std::to_string(g.start + g.tokens) + " tokens, the context is " + std::to_string(*context));
    for (std::int64_t i = 0; i < g.tokens; ++i, ++row) {
      b.positions.push_back(g.start + i);
      b.lengths.push_back(g.start + g.tokens);
      b.sequence.push_back(static_cast<std::int64_t>(s));
      if (outputs == Outputs::all || i == g.tokens - 1) b.outputs.push_back(row);
    }
    b.last.push_back(row - 1);
  }
  b.segments = std::move(segments);
  return b;
}

std::optional<Error> check_sequences(const Sequences& sequences) {
  auto refuse = [](std::string message) { return Error{"batch", std::move(message), {}, ""}; };
  if (sequences.slots.empty()) return refuse("no sequence is named");
  if (sequences.slots.size() != sequences.lengths.size()) return refuse("there is not one length for each sequence");
  std::set<std::int64_t> slots;
  for (const std::int64_t slot : sequences.slots)
    if (!slots.insert(slot).second) return refuse("slot " + std::to_string(slot) + " is there twice");
  return std::nullopt;
}

std::optional<Error> check_batch(const Batch& batch, std::optional<std::int64_t> context) {
  const Result<Batch> wanted = make_batch(batch.segments, Outputs::last, context);
  if (!wanted) return wanted.error();
  for (std::string_view name : {"positions", "lengths", "sequence", "last"})
    if (*batch.field(name) != *wanted->field(name))
      return Error{"batch", "the batch's " + std::string(name) + " do not agree with its segments", {}, ""};
  for (std::int64_t row : batch.outputs)
    if (row < 0 || row >= batch.tokens())
      return Error{"batch", "outputs has row " + std::to_string(row) + ", there are " + std::to_string(batch.tokens()), {}, ""};
  return std::nullopt;
}

}  // namespace modelc::graph::eval
