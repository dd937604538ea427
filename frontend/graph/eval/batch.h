// The tokens of one call, as the language's Batch: ragged, sequence after sequence, no padding.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "frontend/graph/eval/array.h"
#include "runtime/base/result.h"

namespace modelc::graph::eval {

struct Segment {
  std::int64_t slot = 0;                         // which sequence
  std::int64_t tokens = 1;                       // its new tokens in this call, at least 1
  std::int64_t start = 0;                        // its length before this call
};
enum class Outputs : std::uint8_t { all, last };                              // rows whose results are wanted

struct Batch {
  std::vector<Segment> segments;                 // [batch]
  std::vector<std::int64_t> positions;           // [tokens] in the sequence
  std::vector<std::int64_t> lengths;             // [tokens] of the token's sequence after this call
  std::vector<std::int64_t> sequence;            // [tokens] which segment
  std::vector<std::int64_t> outputs;             // [outputs] rows
  std::vector<std::int64_t> last;                // [batch] last row of each segment

  std::int64_t tokens() const { return static_cast<std::int64_t>(positions.size()); }
  // A field by its name in the language, as i32; null where there is none.
  const std::vector<std::int64_t>* field(std::string_view name) const;
};

// Which sequences a call is about, as the language's Sequences: slots and their lengths before the call.
struct Sequences {
  std::vector<std::int64_t> slots;               // [batch]
  std::vector<std::int64_t> lengths;             // [batch]
};

// Errors ("batch"): none, one twice, one list longer than the other.
std::optional<Error> check_sequences(const Sequences& sequences);

// Errors ("batch"): no segment, a segment without tokens, a slot twice, a sequence longer than `context`.
Result<Batch> make_batch(std::vector<Segment> segments, Outputs outputs, std::optional<std::int64_t> context);

// Says what does not hold together in a batch made by hand; none: it is as make_batch would make it, but for `outputs`,
// which may be any rows.
std::optional<Error> check_batch(const Batch& batch, std::optional<std::int64_t> context);

}  // namespace modelc::graph::eval
