// The tokens of one call, ragged: sequence after sequence, no padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/result.h"

namespace modelc {

class State;

// What a caller says: which sequences, how many new tokens each, and which rows' results are wanted.
struct Segment {
  int sequence = 0;                                        // slot in the State
  std::int64_t tokens = 0;                                 // new tokens of it in this call, at least 1
};
enum class Outputs { last, all };                          // rows of results: the last of each sequence, or every one

// Which sequences a call is about, in order: the language's Sequences.
struct Sequences {
  std::vector<std::int32_t> slots;                         // [batch] State slot of each

  std::int64_t batch() const { return static_cast<std::int64_t>(slots.size()); }
  // Errors: none, a slot out of range or named twice.
  static Result<Sequences> make(const State& state, std::span<const int> slots);
};

// What a step sees: the fields of the language's Batch, as i32 arrays.
struct Batch : Sequences {
  std::vector<std::int32_t> positions;                     // [tokens] position of each token in its sequence
  std::vector<std::int32_t> lengths;                       // [tokens] length of its sequence after this call
  std::vector<std::int32_t> sequence;                      // [tokens] 0..batch: which segment
  std::vector<std::int32_t> outputs;                       // [outputs] rows whose results are wanted
  std::vector<std::int32_t> last;                          // [batch] last row of each segment
  std::vector<std::int32_t> starts;                        // [batch + 1] first row of each segment

  std::int64_t tokens() const { return static_cast<std::int64_t>(positions.size()); }

  // Positions go on from each sequence's length in `state`. Errors: a slot out of range or named twice, no tokens, a
  // sequence that would pass the context or the state's capacity (both numbers are said).
  static Result<Batch> make(const State& state, std::span<const Segment> segments, Outputs outputs);
  // Of a model without state: every sequence starts at 0.
  static Result<Batch> make(std::span<const std::int64_t> tokens_of_each, Outputs outputs);
};

}  // namespace modelc
