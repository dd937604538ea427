#include "runtime/checkpoint/mapping.h"

#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/coded.h"
#include "runtime/checkpoint/mapper.h"
#include "runtime/encoding/decode.h"

namespace modelc {

Mapper::Mapper(const std::vector<MappingWeight>& weights, const MappingRules& rules, const CheckpointIndex& index,
               const MappingOptions& options)
    : weights_(weights), index_(index), options_(options), sets_(rules.sets), architecture_(rules.architecture), names_(rules, weights) {
  for (const auto& a : rules.aliases) aliases_.push_back({TensorPattern(a.weight), TensorPattern(a.target), &a});
  for (const auto& p : rules.ignores) ignores_.push_back({TensorPattern(p.pattern), parse_only(p.only).value_or(IndexBounds{})});
  for (const auto& e : rules.encodes) encodes_.push_back({TensorPattern(e.pattern), parse_only(e.only).value_or(IndexBounds{})});
  out_.encodes = rules.encodes;
}

Mapping Mapper::run() {
  out_.checkpoint = index_.path;
  out_.sources.resize(weights_.size());
  needed_.assign(index_.tensors().size(), false);
  check_architecture();
  for (std::size_t set = 0; set < sets_.size(); ++set) choose(static_cast<int>(set));
  for (std::size_t i = 0; i < weights_.size(); ++i) place(i);
  report_unfit();
  report_parts();
  for (std::size_t t = 0; t < needed_.size(); ++t)
    if (!needed_[t] && !ignored(t)) unexpected_.push_back(t);
  report_given();
  report_short_lists();
  report_long_lists();
  report_missing();
  report_unexpected();
  report_differing();
  note_casts();
  for (const auto& [text, names] : used_ignores_)
    for (const std::string& line : name_lines(names, 4)) out_.notes.push_back("ignored by `ignore " + text + "`: " + line);
  for (const auto& [via, names] : made_)
    for (const std::string& line : name_lines(names, 4)) out_.notes.push_back("made by `via " + via + "`: " + line);
  return std::move(out_);
}

std::optional<std::size_t> Mapper::tensor_of(const std::string& name) const {
  const TensorInfo* t = index_.find(name);
  if (t == nullptr) return std::nullopt;
  return static_cast<std::size_t>(t - index_.tensors().data());
}

// One tensor of the file, stored whole or in parts. With parts, `shape` is what they are to make.
bool Mapper::input(const std::string& name, const TensorShape& shape, Found& found) {
  WeightPart part;
  const auto plain = tensor_of(name);
  for (std::size_t e = 0; e < encodes_.size(); ++e) {
    const auto captures = encodes_[e].pattern.match(name);
    if (!captures || !encodes_[e].only.hold(*captures)) continue;
    const MappingRules::Encode& encode = out_.encodes[e];
    std::vector<std::string> lacking;
    std::vector<std::size_t> coded;
    for (const auto& p : encode.parts) {
      const std::string of = part_name(p, name);
      if (const auto t = tensor_of(of)) coded.push_back(*t);
      else lacking.push_back(of);
    }
    // A part may bear the tensor's own name: then the plain tensor is one that is no such part.
    const bool own_name = plain && std::find(coded.begin(), coded.end(), *plain) != coded.end();
    if (coded.empty() || (own_name && coded.size() == 1 && !is_part(encode, name, *plain))) continue;
    if (!lacking.empty()) {
      incomplete_[encode.name].push_back({name, coded.front(), lacking});
      for (std::size_t t : coded) needed_[t] = true;
      part.tensor = coded.front();
    } else {
      part.tensor = coded.front();
      part.encode = e;
      part.coded = coded;
      part.rows = shape.empty() ? 1 : shape[0];
      const auto shapes = part_shapes(encode, shape);
      if (!shapes) {
        found.unfit = shapes.error().message;
        return true;
      }
      for (std::size_t i = 0; i < coded.size(); ++i) {
        const TensorInfo& t = index_.tensors()[coded[i]];
        if (t.shape == (*shapes)[i] && name_fits(encode.parts[i].dtype, t.encoding)) continue;
        found.unfit = t.name + " is " + std::string(modelc::name(t.encoding)) + " " + shape_text(t.shape) + ", and as a part of " +
                      encode.name + " for " + shape_text(shape) + " it would be " + encode.parts[i].dtype + " " + shape_text((*shapes)[i]);
      }
    }
    found.source.parts.push_back(std::move(part));
    return true;
  }
  if (!plain) {
    found.lacking.push_back(name);
    return false;
  }
  part.tensor = *plain;
  const TensorInfo& t = index_.tensors()[*plain];
  part.rows = t.shape.empty() ? 1 : t.shape[0];
  found.source.parts.push_back(std::move(part));
  return true;
}

bool Mapper::name_fits(std::string_view dtype, Encoding e) { return dtype == modelc::name(e); }

// Whether the tensor of this name is the encoding's part of that name (by its type), and not the plain tensor.
bool Mapper::is_part(const MappingRules::Encode& encode, const std::string& name, std::size_t tensor) const {
  for (const auto& p : encode.parts)
    if (part_name(p, name) == name) return name_fits(p.dtype, index_.tensors()[tensor].encoding);
  return false;
}

Mapper::Found Mapper::find(const MappingWeight& w) {
  Found found;
  const Wanted wanted = names_.wanted(w);
  found.wanted = wanted.file.size();
  found.unfit = wanted.wrong;
  if (!found.unfit.empty()) return found;
  for (std::size_t k = 0; k < wanted.file.size(); ++k) input(wanted.file[k], wanted.plan ? wanted.plan->file()[k] : w.shape, found);
  found.source.plan = wanted.plan;
  found.source.pick = wanted.pick;
  return found;
}

// A plan that moves no byte away from its row becomes rows of tensors, which can stay where they lie.
void Mapper::simplify(WeightSource& source, const TensorShape& shape) const {
  if (!source.plan) return;
  struct Run {
    std::size_t tensor;
    std::int64_t first, count;
  };             // elements
  std::vector<std::vector<Run>> arrays;
  for (const WeightPart& p : source.parts) {
    if (p.encode || block_elements(index_.tensors()[p.tensor].encoding) > 1) return;
    arrays.push_back({{p.tensor, 0, index_.tensors()[p.tensor].elements()}});
  }
  const auto join = [&] {
    for (std::size_t i = 1; i < arrays.size(); ++i) arrays[0].insert(arrays[0].end(), arrays[i].begin(), arrays[i].end());
    arrays.resize(1);
  };
  for (std::size_t k = 0; k < source.plan->steps.size(); ++k) {
    const Transform& t = source.plan->steps[k];
    switch (t.kind) {
      case TransformKind::reshape: break;
      case TransformKind::stack: join(); break;
      case TransformKind::concat:
        if (t.a != 0) return;
        join();
        break;
      case TransformKind::split: {
        if (t.a != 0) return;
        std::vector<std::vector<Run>> cut;
        std::size_t run = 0;
        for (const TensorShape& s : source.plan->shapes[k + 1]) {
          std::int64_t left = element_count(s).value_or(0);
          cut.emplace_back();
          while (left > 0 && run < arrays[0].size()) {
            Run& r = arrays[0][run];
            const std::int64_t n = std::min(left, r.count);
            cut.back().push_back({r.tensor, r.first, n});
            r.first += n, r.count -= n, left -= n;
            if (r.count == 0) ++run;
          }
        }
        arrays = std::move(cut);
        break;
      }
      default: return;
    }
  }
  std::vector<WeightPart> parts;
  const std::int64_t row = shape.empty() ? 1 : std::max<std::int64_t>(1, shape.back());
  for (const Run& r : arrays[source.pick]) {
    const TensorInfo& t = index_.tensors()[r.tensor];
    const std::int64_t rows = t.shape.empty() ? 1 : t.shape[0], width = rows > 0 ? t.elements() / rows : 0;
    if (width == 0 || r.first % width != 0 || r.count % width != 0 || r.count % row != 0) return;
    parts.push_back({r.tensor, r.first / width, r.count / width, {}, {}});
  }
  if (parts.empty()) return;
  source.parts = std::move(parts);
  source.plan = nullptr;
  source.pick = 0;
}

void Mapper::need(const Found& f) {
  for (const WeightPart& p : f.source.parts) {
    needed_[p.tensor] = true;
    for (std::size_t t : p.coded) needed_[t] = true;
  }
}

// A file that says what it is, and is another model's: one cause of all that would follow.
void Mapper::check_architecture() {
  if (architecture_.empty() || !index_.metadata) return;
  const auto found = index_.metadata->find("general.architecture");
  const std::string name = found && found->as_string() ? std::string(*found->as_string()) : "";
  if (name == architecture_) return;
  Problem p;
  p.kind = "architecture";
  p.message = "the file is of architecture " + (name.empty() ? "that it does not say" : quote(name)) + ", and the model's block is for " +
              quote(architecture_);
  p.help = "another model file describes it";
  out_.problems.push_back(std::move(p));
}

// `one_of`: the one alternative whose weights are all there. None or several is a problem, and the best goes on.
void Mapper::choose(int set) {
  std::vector<std::size_t> about;
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (names_.concerns(set, weights_[i].name)) about.push_back(i);
  if (about.empty()) return;
  const MappingRules::Set& of = sets_[static_cast<std::size_t>(set)];
  std::vector<std::vector<std::string>> lacking(of.alternatives.size());
  std::vector<std::string> whole;
  std::size_t best = 0;
  for (std::size_t a = 0; a < of.alternatives.size(); ++a) {
    names_.chosen[static_cast<std::size_t>(set)] = static_cast<int>(a);
    for (std::size_t i : about) {
      if (weights_[i].has_default || alias_target(weights_[i].name, nullptr)) continue;
      if (options_.given != nullptr && options_.given->contains(weights_[i].name)) continue;
      const Found f = find(weights_[i]);
      for (const std::string& name : f.lacking) lacking[a].push_back(name);
    }
    std::sort(lacking[a].begin(), lacking[a].end());
    lacking[a].erase(std::unique(lacking[a].begin(), lacking[a].end()), lacking[a].end());
    if (lacking[a].empty()) whole.push_back(of.alternatives[a]);
    if (lacking[a].size() < lacking[best].size()) best = a;
  }
  incomplete_.clear();
  names_.chosen[static_cast<std::size_t>(set)] = static_cast<int>(best);
  if (whole.size() == 1) {
    out_.notes.push_back("of `one_of` at " + of.where + ", `" + whole[0] + "` is what the checkpoint has");
    return;
  }
  Problem p;
  p.kind = "one-of";
  p.where = of.where;
  if (whole.size() > 1) {
    p.message = "the checkpoint has the tensors of " + listed(whole) + ", of which it should have one";
    p.help = "it holds the same weights twice: take one of the sets out";
  } else {
    std::vector<std::string> names;
    for (const std::string& a : of.alternatives) names.push_back("`" + a + "`");
    p.message = "the checkpoint has none of the sets " + listed(names) + " whole";
    for (std::size_t a = 0; a < of.alternatives.size(); ++a)
      for (const std::string& line : name_lines(lacking[a], 4)) p.notes.push_back("`" + of.alternatives[a] + "` lacks " + line);
    for (std::size_t i : about) settled_.insert(weights_[i].name);
  }
  out_.problems.push_back(std::move(p));
}

// The target of the alias for this weight, as a weight's name; null when there is none. `off` gets one that the
// config turned off.
std::optional<std::string> Mapper::alias_target(const std::string& name, const Alias** off) const {
  for (const Alias& a : aliases_) {
    const auto captures = a.weight.match(name);
    if (!captures) continue;
    auto target = a.target.fill(*captures);
    if (!target || *target == name) continue;
    if (a.rule->when.empty()) return target;
    if (off != nullptr && *off == nullptr) *off = &a;
  }
  return std::nullopt;
}

void Mapper::place(std::size_t i) {
  const MappingWeight& w = weights_[i];
  WeightSource& source = out_.sources[i];
  Found own = find(w);
  if (options_.given != nullptr)
    if (const auto given = options_.given->find(w.name); given != options_.given->end()) {
      need(own);                                           // nobody asks for what it stands in for
      take(i, given->second);
      return;
    }
  const Alias* off = nullptr;
  // a = b and b = c: the first of the chain that the file holds. More steps than aliases is a circle.
  auto target_name = alias_target(w.name, &off);
  std::optional<Found> target;
  const auto look = [&] {
    const MappingWeight* t = names_.weight_called(*target_name);
    MappingWeight other = w;                             // a name that is no weight's: the tensor of that name
    other.name = *target_name;
    target.reset();
    Found f = find(t != nullptr ? *t : other);
    if (f.there()) target = std::move(f);
  };
  if (target_name) look();
  for (std::size_t step = 0; target_name && !target && step < aliases_.size(); ++step) {
    const auto next = alias_target(*target_name, nullptr);
    if (!next) break;
    target_name = next;
    look();
  }
  if (own.any() || own.there()) need(own);
  if (!own.unfit.empty()) {
    unfit_.push_back({i, own.unfit});
    return;
  }
  if (target) {
    need(*target);
    // What is wrong with the target's own weight is said once.
    const bool same = declared_alike(*target_name, w) || compare(i, target->source);
    source = std::move(target->source);
    simplify(source, w.shape);
    source.kind = WeightSource::Kind::alias;
    cast_if_declared(i, source);
    if (own.there()) {
      const std::string own_name = index_.tensors()[own.source.parts[0].tensor].name;
      out_.left_to_load.push_back(own_name + " is there beside its alias " + names_.in_file(*target_name) +
                                  ": whether they are equal is left to the load");
      if (same) compare(i, own.source);
      cast_if_declared(i, own.source);
      source.own = std::make_shared<const WeightSource>(std::move(own.source));
    } else {
      out_.notes.push_back(w.name + " = alias of " + *target_name);
    }
  } else if (own.there()) {
    compare(i, own.source);
    source = std::move(own.source);
    simplify(source, w.shape);
    cast_if_declared(i, source);
    if (const std::string via = names_.via_of(w.name); !via.empty()) made_[via].push_back(w.name);
  } else if (w.has_default && !own.any()) {
    source.kind = WeightSource::Kind::default_value;
  } else if (settled_.count(w.name) > 0) {               // the message about its `one_of` says so
  } else if (!target_name) {
    missing_.push_back({i, std::move(own.lacking), own.wanted, off});
  } else if (!reported_as_missing(*target_name)) {       // a missing target is reported as itself: that is enough
    missing_.push_back({i, std::move(own.lacking), own.wanted, nullptr});
  }
}

// A weight that the caller hands in: by the model's name, of the declared shape.
void Mapper::take(std::size_t i, const WeightValue& value) {
  const MappingWeight& w = weights_[i];
  WeightSource& source = out_.sources[i];
  source.kind = WeightSource::Kind::given;
  source.value = value;
  given_.push_back(w.name);
  Problem p;
  p.where = w.where;
  const std::string found = printable(w.name) + ": the weight that was given ";
  if (value.shape() != w.shape) {
    p.kind = "shape";
    p.message = found + "has shape " + shape_text(value.shape()) + ", expected " + expected_shape(w);
  } else if (w.dtype ? value.encoding() != encoding_of(*w.dtype) && !castable(value.encoding(), *w.dtype)
                     : !is_loadable(value.encoding())) {
    p.kind = "dtype";
    p.message = found + "is " + std::string(name(value.encoding())) + ", " +
                (w.dtype ? "declared as " + std::string(name(*w.dtype)) : "which stands for no real numbers");
  } else {
    cast_if_declared(i, source);
    return;
  }
  if (!w.where.empty()) p.notes.push_back("declared at " + w.where);
  p.notes.insert(p.notes.end(), w.origins.begin(), w.origins.end());
  out_.problems.push_back(std::move(p));
}

// Whether auto_cast makes one of the other.
bool Mapper::castable(Encoding from, DType to) const {
  return options_.auto_cast && (from == Encoding::f32 || from == Encoding::bf16) && (to == DType::f32 || to == DType::bf16);
}

void Mapper::cast_if_declared(std::size_t i, WeightSource& source) {
  const MappingWeight& w = weights_[i];
  if (!w.dtype) return;
  bool differs = false;
  Encoding from = encoding_of(*w.dtype);
  const auto look = [&](Encoding e) {
    if (e == encoding_of(*w.dtype) || !castable(e, *w.dtype)) return;
    differs = true;
    from = e;
  };
  if (source.value) look(source.value->encoding());
  for (const WeightPart& part : source.parts)
    if (!part.encode) look(index_.tensors()[part.tensor].encoding);
  if (!differs) return;
  source.cast = *w.dtype;
  ++casts_[{from, *w.dtype}];
}

// Whether this weight has no tensor, no default and no alias: then it stands in the report.
bool Mapper::reported_as_missing(const std::string& name) {
  const MappingWeight* w = names_.weight_called(name);
  return w != nullptr && !w->has_default && !alias_target(name, nullptr);
}

bool Mapper::declared_alike(const std::string& target, const MappingWeight& w) {
  const MappingWeight* t = names_.weight_called(target);
  return t != nullptr && t->shape == w.shape && t->dtype == w.dtype;
}

bool Mapper::ignored(std::size_t t) {
  for (const Bounded& p : ignores_) {
    const auto captures = p.pattern.match(index_.tensors()[t].name);
    if (!captures || !p.only.hold(*captures)) continue;
    used_ignores_[p.pattern.text()].push_back(index_.tensors()[t].name);
    return true;
  }
  return false;
}

// Shapes and encodings of the tensors of weight i; what differs is kept for the report.
bool Mapper::compare(std::size_t i, const WeightSource& source) {
  const MappingWeight& w = weights_[i];
  bool same = true;
  for (std::size_t k = 0; k < source.parts.size(); ++k) {
    if (source.parts[k].encode) continue;                // its parts were looked at
    same = compare(i, source.parts[k].tensor, source.plan ? source.plan->file()[k] : w.shape, source.plan.get()) && same;
  }
  return same;
}

bool Mapper::compare(std::size_t i, std::size_t t, const TensorShape& shape, const TransformPlan* plan) {
  const MappingWeight& w = weights_[i];
  const TensorInfo& have = index_.tensors()[t];
  bool same = true, cast = false;
  if (plan != nullptr)
    for (const Transform& step : plan->steps) cast = cast || step.kind == TransformKind::cast || computes(step.kind);
  if (have.shape != shape) {
    const std::string want =
        shape == w.shape ? expected_shape(w) : shape_text(shape) + ", of which " + text_of(*plan) + " makes " + expected_shape(w);
    differ("shape", "shape " + shape_text(have.shape), "expected " + want, i, t);
    same = false;
  }
  if (w.dtype && !cast) {
    const Encoding want = encoding_of(*w.dtype);
    if (have.encoding != want && !castable(have.encoding, *w.dtype)) {
      differ("dtype", "stored as " + std::string(name(have.encoding)), "declared as " + std::string(name(want)), i, t);
      same = false;
    }
  } else if (!is_loadable(have.encoding)) {
    const bool f8 = have.encoding == Encoding::f8_e4m3 || have.encoding == Encoding::f8_e5m2;
    differ("dtype", "stored as " + std::string(name(have.encoding)),
           f8 ? "which means nothing without its scales: an `encode` rule says where they are" : "which stands for no real numbers", i, t);
    same = false;
  }
  return same;
}

std::string Mapper::text_of(const TransformPlan& plan) {
  std::string s;
  for (const Transform& t : plan.steps) s += (s.empty() ? "" : ", ") + text(t);
  return s;
}

void Mapper::differ(const char* kind, std::string found, std::string expected, std::size_t weight, std::size_t tensor) {
  // Alike differences of alike weights become one problem.
  const std::string key = std::string(kind) + '\n' + found + '\n' + expected + '\n' + weights_[weight].where;
  const auto [at, fresh] = differing_at_.emplace(key, differing_.size());
  if (fresh) differing_.push_back({kind, std::move(found), std::move(expected), {}, {}});
  differing_[at->second].weights.push_back(weight);
  differing_[at->second].tensors.push_back(tensor);
}

bool is_loadable(Encoding e) {
  // Small floats mean something with their scales alone: their parts are read by an `encode` rule.
  const bool small = e >= Encoding::f8_e4m3 && e <= Encoding::f8_e5m2;
  return is_float(e) && !small && e != Encoding::f8_e8m0 && !(e >= Encoding::f4_e2m1 && e <= Encoding::f6_e3m2);
}

MappingRules rules_for(std::span<const MappingRules> all, const CheckpointIndex& index) {
  const std::string_view format = index.format == CheckpointFormat::gguf ? "gguf" : "safetensors";
  for (const MappingRules& r : all)
    if (r.format == format) return r;
  MappingRules none;
  none.format = format;
  return none;
}

Mapping map_weights(const std::vector<MappingWeight>& weights, const MappingRules& rules, const CheckpointIndex& index,
                    const MappingOptions& options) {
  return Mapper(weights, rules, index, options).run();
}

}  // namespace modelc
