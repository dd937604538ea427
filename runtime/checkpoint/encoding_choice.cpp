#include "runtime/checkpoint/encoding_choice.h"

#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/gguf/types.h"
#include "runtime/checkpoint/safetensors/reader.h"
#include "runtime/encoding/decode.h"

namespace modelc {
namespace {

bool packed(Encoding e) { return block_elements(e) > 1; }
bool fits(Encoding e, const TensorShape& shape) { return !packed(e) || (!shape.empty() && shape.back() % block_elements(e) == 0); }
// a has fewer bits an element than b.
bool fewer_bits(Encoding a, Encoding b) { return block_bytes(a) * block_elements(b) < block_bytes(b) * block_elements(a); }

Encoding with_blocks_of_32(Encoding e) {
  switch (e) {
    case Encoding::q4_k: return Encoding::q5_0;
    case Encoding::q5_k: return Encoding::q5_1;
    case Encoding::q6_k: return Encoding::q8_0;
    case Encoding::iq4_xs: return Encoding::iq4_nl;
    default: return Encoding::q4_0;
  }
}

}  // namespace

EncodingChoice::EncodingChoice(const ConvertOptions& options) : options_(options) {
  for (const QuantizeRule& r : options.rules) lines_.push_back({TensorPattern(r.pattern), &r});
}

EncodingChoice::Asked EncodingChoice::asked(const std::string& weight) const {
  Asked a;
  for (const Line& line : lines_) {
    std::string rest;
    if (!line.pattern.match_prefix(weight, rest)) continue;
    if (line.rule->never_below) {
      a.floor = line.rule->encoding;
      a.floor_at = line.rule->where;
      continue;
    }
    if (options_.follow) a.encoding = line.rule->encoding, a.or_file = line.rule->or_file;
  }
  if (!options_.follow) a.encoding = options_.encoding;
  return a;
}

bool EncodingChoice::holds(Encoding e) const {
  return options_.to == CheckpointFormat::gguf ? gguf_type(e).has_value() : !safetensors_name(e).empty() && !packed(e);
}

EncodingChoice::Chosen EncodingChoice::choose(Encoding natural, const TensorShape& shape,
                                              std::span<const MappingWeight* const> weights) const {
  if (!is_float(natural)) return {natural};
  const bool gguf = options_.to == CheckpointFormat::gguf;
  const Encoding stored = holds(natural) && fits(natural, shape) ? natural : Encoding::f32;
  const bool plain = shape.size() <= 1 || std::any_of(weights.begin(), weights.end(), [](const MappingWeight* w) { return w->plain; });
  for (const MappingWeight* w : weights)                   // the model takes no other
    if (plain && w->dtype && holds(encoding_of(*w->dtype))) return {encoding_of(*w->dtype)};
  if (plain) {
    if (gguf) return {natural == Encoding::f64 ? Encoding::f64 : Encoding::f32};
    if (options_.encoding && !packed(*options_.encoding) && !options_.follow) return {*options_.encoding};
    return {stored};
  }
  // Of several weights in one tensor the one that asks for most decides.
  std::optional<Encoding> encoding;
  std::optional<Encoding> floor;
  std::string floor_at;
  for (const MappingWeight* w : weights) {
    const Asked a = asked(w->name);
    Encoding e = a.encoding.value_or(stored);
    if (a.or_file && packed(natural) && stored == natural) e = stored;
    if (a.floor && fewer_bits(e, *a.floor)) e = stored, floor = a.floor, floor_at = a.floor_at;
    if (!encoding || fewer_bits(*encoding, e)) encoding = e;
  }
  Chosen c{encoding.value_or(stored)};
  if (floor && c.encoding == stored)
    c.because = "never below " + std::string(name(*floor)) + (floor_at.empty() ? "" : " (" + floor_at + ")");
  if (!holds(c.encoding)) return {stored, "the format does not hold " + std::string(name(c.encoding))};
  if (fits(c.encoding, shape)) return c;
  const Encoding wanted = c.encoding;
  c.because = "rows of " + std::to_string(shape.back()) + " are not whole blocks of " + std::to_string(block_elements(wanted)) + " as " +
              std::string(name(wanted)) + " has";
  c.encoding = block_elements(wanted) > 32 ? with_blocks_of_32(wanted) : Encoding::f16;
  if (!fits(c.encoding, shape)) c.encoding = Encoding::f16;
  return c;
}

}  // namespace modelc
