#include "runtime/checkpoint/weight_data.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/coded.h"
#include "runtime/encoding/decode.h"

namespace modelc {
namespace {

Result<HostArray> whole(CheckpointData& data, const Mapping& mapping, const WeightPart& part, const TensorShape* logical) {
  const auto read = [&](std::size_t tensor) -> Result<HostArray> {
    const TensorInfo& info = data.index().tensors()[tensor];
    auto stored = data.bytes(info);
    if (!stored) return std::move(stored.error());
    HostArray copy{info.encoding, info.shape, {stored->data, stored->data + stored->size}};
    if (Status s = stored->owner->intact(); !s) return std::move(s.error());
    return copy;
  };
  if (!part.encode) return read(part.tensor);
  std::vector<HostArray> parts;
  for (std::size_t t : part.coded) {
    auto x = read(t);
    if (!x) return x;
    parts.push_back(std::move(*x));
  }
  auto value = decode(mapping.encodes[*part.encode], *logical, parts);
  if (!value) value.error().notes.push_back("of " + data.index().tensors()[part.tensor].name);
  return value;
}

// Rows of a tensor, cut out.
HostArray rows_of(HostArray x, const WeightPart& part) {
  const std::int64_t all = x.shape.empty() ? 1 : x.shape[0];
  if (part.first == 0 && part.rows == all) return x;
  const std::size_t row = all > 0 ? x.bytes.size() / static_cast<std::size_t>(all) : 0;
  const auto begin = x.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(part.first) * row);
  HostArray y{x.encoding, x.shape, {begin, begin + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(part.rows) * row)}};
  y.shape[0] = part.rows;
  return y;
}

}  // namespace

Encoding read_encoding(const CheckpointIndex& index, const WeightSource& source) {
  if (source.cast) return encoding_of(*source.cast);
  if (source.value) return source.value->encoding();
  if (source.kind == WeightSource::Kind::default_value || source.parts.empty()) return Encoding::f32;
  const auto of = [&](const WeightPart& p) { return p.encode ? Encoding::f32 : index.tensors()[p.tensor].encoding; };
  const Encoding first = of(source.parts[0]);
  const bool alike = std::all_of(source.parts.begin(), source.parts.end(), [&](const WeightPart& p) { return of(p) == first; });
  return encoding_after(source.plan.get(), alike ? first : Encoding::f32);
}

Result<HostArray> read_weight(CheckpointData& data, const Mapping& mapping, const WeightSource& source, const TensorShape& shape) {
  if (source.cast) {
    WeightSource as_stored = source;
    as_stored.cast.reset();
    auto x = read_weight(data, mapping, as_stored, shape);
    return x ? cast(*x, *source.cast) : std::move(x);
  }
  if (source.value) {
    const auto bytes = source.value->bytes();
    HostArray copy{source.value->encoding(), shape, {bytes.begin(), bytes.end()}};
    if (Status s = source.value->file()->intact(); !s) return std::move(s.error());
    return copy;
  }
  std::vector<HostArray> arrays;
  for (std::size_t i = 0; i < source.parts.size(); ++i) {
    const WeightPart& part = source.parts[i];
    auto x = whole(data, mapping, part, source.plan ? &source.plan->file()[i] : &shape);
    if (!x) return x;
    arrays.push_back(source.plan ? std::move(*x) : rows_of(std::move(*x), part));
  }
  bool alike = true;
  for (const HostArray& x : arrays) alike = alike && x.encoding == arrays[0].encoding;
  if (!alike)
    for (HostArray& x : arrays) {
      auto y = cast(x, DType::f32);
      if (!y) return y;
      x = std::move(*y);
    }
  if (source.plan) {
    auto made = to_model(*source.plan, std::move(arrays));
    if (!made) return std::move(made.error());
    return std::move((*made)[source.pick]);
  }
  HostArray out = std::move(arrays[0]);
  for (std::size_t i = 1; i < arrays.size(); ++i) out.bytes.insert(out.bytes.end(), arrays[i].bytes.begin(), arrays[i].bytes.end());
  out.shape = shape;
  return out;
}

Result<std::vector<float>> read_weight_f32(CheckpointData& data, const Mapping& mapping, const WeightSource& source,
                                           const TensorShape& shape) {
  auto x = read_weight(data, mapping, source, shape);
  if (!x) return std::move(x.error());
  std::vector<float> values(static_cast<std::size_t>(element_count(shape).value_or(0)));
  if (stored_bytes(x->encoding, shape) != static_cast<std::int64_t>(x->bytes.size()) || !decode(x->encoding, x->bytes.data(), values))
    return Error{"encoding",
                 describe(data.index(), source) + " is stored as " + std::string(name(x->encoding)) + ", which stands for no real numbers",
                 {},
                 {}};
  return values;
}

Result<std::string> compare_alias(CheckpointData& data, const Mapping& mapping, const WeightSource& source, const std::string& weight,
                                  const TensorShape& shape) {
  auto own = read_weight(data, mapping, *source.own, shape), target = read_weight(data, mapping, source, shape);
  if (!own) return std::move(own.error());
  if (!target) return std::move(target.error());
  if (own->encoding != target->encoding) {
    auto a = cast(*own, DType::f32), b = cast(*target, DType::f32);
    if (!a) return std::move(a.error());
    if (!b) return std::move(b.error());
    own = std::move(*a);
    target = std::move(*b);
  }
  const TensorInfo& x = data.index().tensors()[source.own->parts[0].tensor];
  const TensorInfo& y = data.index().tensors()[source.parts[0].tensor];
  const std::size_t rows = shape.empty() ? 1 : static_cast<std::size_t>(shape[0]);
  const std::size_t row = rows > 0 ? own->bytes.size() / rows : 0;
  for (std::size_t r = 0; r < rows && row > 0; ++r) {
    if (std::memcmp(own->bytes.data() + r * row, target->bytes.data() + r * row, row) == 0) continue;
    Error e;
    e.kind = "alias-conflict";
    e.message = x.name + " differs from " + y.name + ", of which " + weight + " is an alias: first in row " + std::to_string(r);
    e.notes = {x.name + " in " + data.index().file_of(x).label, y.name + " in " + data.index().file_of(y).label};
    e.help = "if the two are one, take " + x.name + " out of the checkpoint; if not, turn the alias off in the config";
    return e;
  }
  return x.name + " is there beside its alias " + y.name + ", and equal to it";
}

std::string describe(const CheckpointIndex& index, const WeightSource& source) {
  if (source.value) return "given by the caller";
  if (source.parts.empty()) return "its default value";
  const TensorInfo& t = index.tensors()[source.parts[0].tensor];
  std::string s = index.file_of(t).label + ": " + t.name;
  if (source.parts.size() > 1) s += " and " + std::to_string(source.parts.size() - 1) + " more";
  if (source.plan)
    for (const Transform& step : source.plan->steps) s += (&step == source.plan->steps.data() ? " via " : ", ") + text(step);
  return s;
}

}  // namespace modelc
