#include "runtime/checkpoint/convert.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/encoding_choice.h"
#include "runtime/checkpoint/mapping_names.h"
#include "runtime/checkpoint/name_patterns.h"
#include "runtime/checkpoint/tensor_pattern.h"
#include "runtime/checkpoint/weight_data.h"
#include "runtime/encoding/decode.h"
#include "runtime/encoding/encode.h"

namespace modelc {
namespace {

bool packed(Encoding e) { return block_elements(e) > 1; }

// Whether blocks can go through the plan as they are: rows move, and nothing within a row does.
bool moves_rows(const TransformPlan* plan) {
  if (plan == nullptr) return true;
  for (std::size_t k = 0; k < plan->steps.size(); ++k) {
    const Transform& t = plan->steps[k];
    const auto last = static_cast<std::int64_t>(plan->shapes[k + 1].front().size()) - 1;
    switch (t.kind) {
      case TransformKind::deinterleave_rope_rows:
        if (last < 1) return false;
        break;
      case TransformKind::stack:
        if (last < 2) return false;
        break;
      case TransformKind::split:
      case TransformKind::concat:
        if (t.a == last || t.a == -1) return false;
        break;
      default: return false;
    }
  }
  return true;
}

bool gives_back(const HostArray& narrow, const HostArray& wide) {
  auto back = cast(narrow, DType::f32);
  return back && back->bytes == wide.bytes;
}

Error not_finite(const ConvertedTensor& t, std::size_t at) {
  return Error{"not-finite",
               "tensor " + quote(t.name) + " cannot be written as " + std::string(name(t.encoding)) + ": element " +
                   grouped(std::uint64_t{at}) + " is no finite number",
               {},
               "blocks have one scale for all their elements; keep it plain, as f32, f16 or bf16"};
}

// A reader of the format would leave out what the rules ignore: the weight would be lost without a word.
Status has_place(const FileGroup& g, const MappingRules& target, const std::vector<MappingWeight>& weights) {
  for (const auto& ignored : target.ignores) {
    const TensorPattern pattern(ignored.pattern);
    const auto bounds = parse_only(ignored.only);
    for (const std::string& file : g.file)
      if (const auto captures = pattern.match(file); captures && (!bounds || bounds->hold(*captures)))
        return Error{"layout",
                     weights[g.weights[0]].name + " would become the tensor " + quote(file) + ", which the rules for " + target.format +
                         " ignore" + (ignored.where.empty() ? "" : " (" + ignored.where + ")") + ": the format has no place for it",
                     {},
                     "give a configuration that says what the weight holds (--config config.json, of the published model)"};
  }
  return {};
}

}  // namespace

Result<Conversion> Conversion::plan(std::shared_ptr<const CheckpointIndex> source, std::vector<MappingWeight> weights, Mapping mapping,
                                    const MappingRules& target, ConvertOptions options) {
  Conversion c;
  c.source_ = std::move(source);
  c.weights_ = std::move(weights);
  c.mapping_ = std::move(mapping);
  c.options_ = std::move(options);
  c.data_ = std::make_unique<CheckpointData>(c.source_, c.options_.access);
  c.team_ = std::make_unique<ThreadTeam>(c.options_.threads);
  auto groups = file_groups(c.weights_, target);
  if (!groups) return std::move(groups.error());
  const EncodingChoice choice(c.options_);

  const auto is_default = [&](std::size_t w) { return c.mapping_.sources[w].kind == WeightSource::Kind::default_value; };
  for (FileGroup& g : *groups) {
    if (std::all_of(g.weights.begin(), g.weights.end(), is_default)) continue;        // their absence says so
    for (std::size_t w : g.weights) {
      const WeightSource& s = c.mapping_.sources[w];
      if (!s.own) continue;
      auto note = compare_alias(*c.data_, c.mapping_, s, c.weights_[w].name, c.weights_[w].shape);
      if (!note) return std::move(note.error());
      c.notes_.push_back(std::move(*note));
    }
    if (Status s = has_place(g, target, c.weights_); !s) return std::move(s.error());
    c.groups_.push_back(std::move(g));
  }
  std::vector<bool> written(c.weights_.size(), false);
  for (const FileGroup& g : c.groups_)
    for (std::size_t w : g.weights) written[w] = true;
  for (std::size_t w = 0; w < c.weights_.size(); ++w) {
    const WeightSource& s = c.mapping_.sources[w];
    if (written[w] || !s.own) continue;
    auto note = compare_alias(*c.data_, c.mapping_, s, c.weights_[w].name, c.weights_[w].shape);
    if (!note) return std::move(note.error());
    c.notes_.push_back(*note + ": it is not written");
  }

  std::map<std::string, std::vector<std::string>> changed, bounded;
  std::map<TransformKind, std::vector<std::string>> computed;
  for (std::size_t g = 0; g < c.groups_.size(); ++g) {
    const FileGroup& group = c.groups_[g];
    std::vector<const MappingWeight*> held;
    std::optional<Encoding> stored;
    std::set<TransformKind> computes_by;
    for (std::size_t w : group.weights) {
      held.push_back(&c.weights_[w]);
      const Encoding e = read_encoding(*c.source_, c.mapping_.sources[w]);
      stored = stored && *stored != e ? Encoding::f32 : e;
      if (const auto& plan = c.mapping_.sources[w].plan)
        for (const Transform& t : plan->steps)
          if (computes(t.kind)) computes_by.insert(t.kind);
    }
    if (group.plan)
      for (const Transform& t : group.plan->steps)
        if (computes(t.kind)) computes_by.insert(t.kind);
    if (packed(*stored) && !moves_rows(group.plan.get())) stored = Encoding::f32;
    const Encoding natural = encoding_after(group.plan.get(), *stored);
    for (std::size_t k = 0; k < group.file.size(); ++k) {
      ConvertedTensor t;
      t.name = group.file[k];
      t.shape = group.plan ? group.plan->file()[k] : c.weights_[group.weights[0]].shape;
      const EncodingChoice::Chosen chosen = choice.choose(natural, t.shape, held);
      t.encoding = chosen.encoding;
      if (!chosen.because.empty()) bounded[std::string(modelc::name(t.encoding)) + ", as " + chosen.because].push_back(t.name);
      if (t.encoding != *stored) {
        const bool exact = t.encoding == Encoding::f32 && *stored != Encoding::f64;
        changed[std::string(modelc::name(*stored)) + " -> " + std::string(modelc::name(t.encoding)) + (exact ? " (exact)" : "")].push_back(
            t.name);
        if (exact && t.shape.size() <= 1 && !packed(*stored)) c.widened_.emplace(t.name, *stored);
      }
      for (const TransformKind kind : computes_by) computed[kind].push_back(t.name);
      c.tensors_.push_back(std::move(t));
      c.places_.push_back({g, k});
    }
  }
  for (std::size_t i = 0; i < c.options_.made.size(); ++i) {
    const ConvertOptions::Made& m = c.options_.made[i];
    c.tensors_.push_back({m.name, Encoding::f32, m.shape});
    c.places_.push_back({no_group, i});
    c.notes_.push_back("made of the configuration: " + m.name);
  }
  if (Status s = c.restore(); !s) return std::move(s.error());
  const auto tell = [&](const std::string& what, const std::vector<std::string>& names) {
    for (const std::string& line : name_lines(names, 4)) c.notes_.push_back(what + ": " + line);
  };
  for (const auto& [what, names] : changed) tell(what, names);
  for (const auto& [what, names] : bounded) tell(what, names);
  for (const auto& [kind, names] : computed)
    tell(kind == TransformKind::offset ? "a number is added to each element (`offset`), exact within 1 ulp of f32"
                                       : "the logarithm of each element is taken or undone (`log_negated`), rounded to f32",
         names);

  if (c.options_.to == CheckpointFormat::safetensors) {    // wide elements first, so that each is aligned to its element
    std::vector<std::size_t> order(c.tensors_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return block_bytes(c.tensors_[a].encoding) > block_bytes(c.tensors_[b].encoding);
    });
    std::vector<ConvertedTensor> tensors;
    std::vector<Place> places;
    for (std::size_t i : order) {
      tensors.push_back(std::move(c.tensors_[i]));
      places.push_back(c.places_[i]);
    }
    c.tensors_ = std::move(tensors);
    c.places_ = std::move(places);
  }
  c.last_.resize(c.groups_.size());
  for (std::size_t i = 0; i < c.places_.size(); ++i)
    if (c.places_[i].group != no_group) c.last_[c.places_[i].group] = i;
  return c;
}

// What a former conversion widened and no one has changed since is narrowed again. It is read now: a header says types.
Status Conversion::restore() {
  if (options_.widened.empty() || options_.to != CheckpointFormat::safetensors || options_.encoding) return {};
  std::vector<std::string> narrowed;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    ConvertedTensor& t = tensors_[i];
    if (t.encoding != Encoding::f32 || t.shape.size() > 1 || places_[i].group == no_group) continue;
    std::optional<Encoding> was;
    bool all = true;
    for (std::size_t w : groups_[places_[i].group].weights)
      for (const WeightPart& p : mapping_.sources[w].parts) {
        const auto at = options_.widened.find(source_->tensors()[p.tensor].name);
        all = all && at != options_.widened.end() && (!was || *was == at->second);
        if (at != options_.widened.end()) was = at->second;
      }
    const auto dtype = was ? dtype_of(*was) : std::nullopt;
    if (!all || !dtype) continue;
    auto arrays = group(places_[i].group);
    if (!arrays) return std::move(arrays.error());
    const HostArray& wide = (*arrays)[places_[i].at];
    auto narrow = cast(wide, *dtype);
    if (!narrow || wide.encoding != Encoding::f32 || !gives_back(*narrow, wide)) continue;
    t.encoding = *was;
    narrowed.push_back(t.name);
  }
  for (const std::string& line : name_lines(narrowed, 4)) notes_.push_back("narrowed again to what it was, every value exactly: " + line);
  return {};
}

Result<std::vector<HostArray>> Conversion::group(std::size_t g) {
  const FileGroup& group = groups_[g];
  std::vector<HostArray> arrays;
  for (std::size_t w : group.weights) {
    const WeightSource& source = mapping_.sources[w];
    const TensorShape& shape = weights_[w].shape;
    if (source.kind == WeightSource::Kind::default_value)
      return Error{
          "layout", group.file[0] + " would hold " + weights_[w].name + ", of which the checkpoint has nothing but the default", {}, {}};
    auto x = read_weight(*data_, mapping_, source, shape);
    if (!x) return std::move(x.error());
    arrays.push_back(std::move(*x));
  }
  bool alike = true;
  for (const HostArray& x : arrays) alike = alike && x.encoding == arrays[0].encoding;
  for (HostArray& x : arrays) {
    if (alike && (!packed(x.encoding) || moves_rows(group.plan.get()))) continue;
    auto wide = cast(x, DType::f32);
    if (!wide) return std::move(wide.error());
    x = std::move(*wide);
  }
  if (options_.access == FileAccess::map)                  // the pages are not needed again
    for (std::uint32_t f = 0; f < source_->files().size(); ++f) data_->release(f);
  return file_tensors(group, std::move(arrays));
}

Result<HostArray> Conversion::encoded(HostArray x, const ConvertedTensor& t) {
  if (x.encoding == t.encoding) return x;
  const auto count = static_cast<std::size_t>(element_count(t.shape).value_or(0));
  const auto size = stored_bytes(t.encoding, t.shape);
  if (!size || block_encoder(t.encoding) == nullptr || block_decoder(x.encoding) == nullptr)
    return Error{
        "encoding",
        "tensor " + quote(t.name) + " is " + std::string(name(x.encoding)) + " and cannot be written as " + std::string(name(t.encoding)),
        {},
        {}};
  HostArray y{t.encoding, t.shape, std::vector<std::byte>(static_cast<std::size_t>(*size))};
  // Whole blocks of both, many at a time.
  const auto from_per = static_cast<std::size_t>(block_elements(x.encoding)), to_per = static_cast<std::size_t>(block_elements(t.encoding));
  const std::size_t unit = std::max(from_per, to_per);
  if (count % unit != 0)
    return Error{
        "encoding", "tensor " + quote(t.name) + ": " + shape_text(t.shape) + " is not whole blocks of " + std::to_string(unit), {}, {}};
  std::atomic<std::size_t> bad{count};
  const std::size_t grain = std::max<std::size_t>(1, 16384 / unit);
  team_->run(static_cast<std::int64_t>(count / unit), static_cast<std::int64_t>(grain), [&](std::int64_t begin, std::int64_t end, int) {
    const std::size_t first = static_cast<std::size_t>(begin) * unit, n = static_cast<std::size_t>(end - begin) * unit;
    std::vector<float> values(n);
    decode(x.encoding, x.bytes.data() + first / from_per * static_cast<std::size_t>(block_bytes(x.encoding)), values);
    if (to_per > 1)
      for (std::size_t i = 0; i < n; ++i)
        if (!std::isfinite(values[i])) {
          std::size_t seen = bad.load();
          while (first + i < seen && !bad.compare_exchange_weak(seen, first + i)) {}
          return;
        }
    encode(t.encoding, values, y.bytes.data() + first / to_per * static_cast<std::size_t>(block_bytes(t.encoding)));
  });
  if (bad.load() < count) return not_finite(t, bad.load());
  return y;
}

HostArray Conversion::made(std::size_t at) const {
  const ConvertOptions::Made& m = options_.made[at];
  HostArray x{Encoding::f32, m.shape, std::vector<std::byte>(m.values.size() * sizeof(float))};
  if (!m.values.empty()) std::memcpy(x.bytes.data(), m.values.data(), x.bytes.size());
  return x;
}

Result<std::span<const std::byte>> Conversion::bytes(std::size_t i) {
  const Place& place = places_[i];
  if (place.group == no_group) {
    out_ = made(place.at);
    return std::span<const std::byte>(out_.bytes);
  }
  if (held_ != place.group) {
    arrays_.clear();
    held_.reset();
    auto made = group(place.group);
    if (!made) return std::move(made.error());
    arrays_ = std::move(*made);
    held_ = place.group;
  }
  const bool last = last_[place.group] == i;
  HostArray x = last ? std::move(arrays_[place.at]) : arrays_[place.at];
  if (last) held_.reset();
  auto made = encoded(std::move(x), tensors_[i]);
  if (!made) return std::move(made.error());
  out_ = std::move(*made);
  return std::span<const std::byte>(out_.bytes);
}

}  // namespace modelc
