#include "runtime/checkpoint/mapping.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <unordered_map>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/coded.h"
#include "runtime/checkpoint/mapping_names.h"
#include "runtime/checkpoint/name_patterns.h"
#include "runtime/checkpoint/tensor_pattern.h"
#include "runtime/encoding/decode.h"

namespace modelc {
namespace {

std::string found_in(const CheckpointIndex& index, const TensorInfo& t) { return index.file_of(t).label; }

// "[heads * d, hidden_size] = [4 * 16, 40]"
std::string expected_shape(const MappingWeight& w) {
  const std::string plain = shape_text(w.shape);
  if (w.formula.empty()) return plain;
  const std::string numbers = w.numbers.empty() ? plain : w.numbers;
  return w.formula == numbers ? plain : w.formula + " = " + numbers;
}

std::vector<std::string> declaration(const MappingWeight& w) {
  std::vector<std::string> notes;
  if (!w.where.empty()) notes.push_back("declared at " + w.where);
  notes.insert(notes.end(), w.origins.begin(), w.origins.end());
  return notes;
}

struct Alias { TensorPattern weight, target; const MappingRules::Alias* rule; };

class Mapper {
 public:
  Mapper(const std::vector<MappingWeight>& weights, const MappingRules& rules, const CheckpointIndex& index,
         const MappingOptions& options)
      : weights_(weights), index_(index), options_(options), sets_(rules.sets), architecture_(rules.architecture), names_(rules, weights) {
    for (const auto& a : rules.aliases) aliases_.push_back({TensorPattern(a.weight), TensorPattern(a.target), &a});
    for (const auto& p : rules.ignores) ignores_.push_back({TensorPattern(p.pattern), parse_only(p.only).value_or(IndexBounds{})});
    for (const auto& e : rules.encodes) encodes_.push_back({TensorPattern(e.pattern), parse_only(e.only).value_or(IndexBounds{})});
    out_.encodes = rules.encodes;
  }

  Mapping run() {
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
    report_missing();
    report_unexpected();
    report_differing();
    for (const auto& [text, names] : used_ignores_)
      for (const std::string& line : name_lines(names, 4))
        out_.notes.push_back("ignored by `ignore " + text + "`: " + line);
    for (const auto& [via, names] : made_)
      for (const std::string& line : name_lines(names, 4)) out_.notes.push_back("made by `via " + via + "`: " + line);
    return std::move(out_);
  }

 private:
  struct Missing { std::size_t weight; std::vector<std::string> file_names; std::size_t of; const Alias* off; };
  struct Differing { std::string kind, found, expected; std::vector<std::size_t> weights, tensors; };
  struct Bounded { TensorPattern pattern; IndexBounds only; };
  // The tensors of a weight, as far as the file has them.
  struct Found {
    WeightSource source;
    std::vector<std::string> lacking;                      // names that the file has not
    std::size_t wanted = 1;
    std::string unfit;                                     // why the rule cannot make the weight
    bool there() const { return lacking.empty() && unfit.empty(); }
    bool any() const { return lacking.size() < wanted && unfit.empty(); }
  };

  std::optional<std::size_t> tensor_of(const std::string& name) const {
    const TensorInfo* t = index_.find(name);
    if (t == nullptr) return std::nullopt;
    return static_cast<std::size_t>(t - index_.tensors().data());
  }

  // One tensor of the file, stored whole or in parts. With parts, `shape` is what they are to make.
  bool input(const std::string& name, const TensorShape& shape, Found& found) {
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
          found.unfit = t.name + " is " + std::string(modelc::name(t.encoding)) + " " + shape_text(t.shape) + ", and as a part of " + encode.name +
                        " for " + shape_text(shape) + " it would be " + encode.parts[i].dtype + " " + shape_text((*shapes)[i]);
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
  static bool name_fits(std::string_view dtype, Encoding e) { return dtype == modelc::name(e); }
  // Whether the tensor of this name is the encoding's part of that name (by its type), and not the plain tensor.
  bool is_part(const MappingRules::Encode& encode, const std::string& name, std::size_t tensor) const {
    for (const auto& p : encode.parts)
      if (part_name(p, name) == name) return name_fits(p.dtype, index_.tensors()[tensor].encoding);
    return false;
  }

  Found find(const MappingWeight& w) {
    Found found;
    const Wanted wanted = names_.wanted(w);
    found.wanted = wanted.file.size();
    found.unfit = wanted.wrong;
    if (!found.unfit.empty()) return found;
    for (std::size_t k = 0; k < wanted.file.size(); ++k)
      input(wanted.file[k], wanted.plan ? wanted.plan->file()[k] : w.shape, found);
    found.source.plan = wanted.plan;
    found.source.pick = wanted.pick;
    return found;
  }

  // A plan that moves no byte away from its row becomes rows of tensors, which can stay where they lie.
  void simplify(WeightSource& source, const TensorShape& shape) const {
    if (!source.plan) return;
    struct Run { std::size_t tensor; std::int64_t first, count; };             // elements
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

  void need(const Found& f) {
    for (const WeightPart& p : f.source.parts) {
      needed_[p.tensor] = true;
      for (std::size_t t : p.coded) needed_[t] = true;
    }
  }

  // A file that says what it is, and is another model's: one cause of all that would follow.
  void check_architecture() {
    if (architecture_.empty() || !index_.metadata) return;
    const auto found = index_.metadata->find("general.architecture");
    const std::string name = found && found->as_string() ? std::string(*found->as_string()) : "";
    if (name == architecture_) return;
    Problem p;
    p.kind = "architecture";
    p.message = "the file is of architecture " + (name.empty() ? "that it does not say" : quote(name)) + ", and the model's block is for " + quote(architecture_);
    p.help = "another model file describes it";
    out_.problems.push_back(std::move(p));
  }

  // `one_of`: the one alternative whose weights are all there. None or several is a problem, and the best goes on.
  void choose(int set) {
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
  std::optional<std::string> alias_target(const std::string& name, const Alias** off) const {
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

  void place(std::size_t i) {
    const MappingWeight& w = weights_[i];
    WeightSource& source = out_.sources[i];
    Found own = find(w);
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
      if (own.there()) {
        const std::string own_name = index_.tensors()[own.source.parts[0].tensor].name;
        out_.left_to_load.push_back(own_name + " is there beside its alias " + names_.in_file(*target_name) +
                                    ": whether they are equal is left to the load");
        if (same) compare(i, own.source);
        source.own = std::make_shared<const WeightSource>(std::move(own.source));
      } else {
        out_.notes.push_back(w.name + " = alias of " + *target_name);
      }
    } else if (own.there()) {
      compare(i, own.source);
      source = std::move(own.source);
      simplify(source, w.shape);
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

  // Whether this weight has no tensor, no default and no alias: then it stands in the report.
  bool reported_as_missing(const std::string& name) {
    const MappingWeight* w = names_.weight_called(name);
    return w != nullptr && !w->has_default && !alias_target(name, nullptr);
  }

  bool declared_alike(const std::string& target, const MappingWeight& w) {
    const MappingWeight* t = names_.weight_called(target);
    return t != nullptr && t->shape == w.shape && t->dtype == w.dtype;
  }

  bool ignored(std::size_t t) {
    for (const Bounded& p : ignores_) {
      const auto captures = p.pattern.match(index_.tensors()[t].name);
      if (!captures || !p.only.hold(*captures)) continue;
      used_ignores_[p.pattern.text()].push_back(index_.tensors()[t].name);
      return true;
    }
    return false;
  }

  // Shapes and encodings of the tensors of weight i; what differs is kept for the report.
  bool compare(std::size_t i, const WeightSource& source) {
    const MappingWeight& w = weights_[i];
    bool same = true;
    for (std::size_t k = 0; k < source.parts.size(); ++k) {
      if (source.parts[k].encode) continue;                // its parts were looked at
      same = compare(i, source.parts[k].tensor, source.plan ? source.plan->file()[k] : w.shape, source.plan.get()) && same;
    }
    return same;
  }

  bool compare(std::size_t i, std::size_t t, const TensorShape& shape, const TransformPlan* plan) {
    const MappingWeight& w = weights_[i];
    const TensorInfo& have = index_.tensors()[t];
    bool same = true, cast = false;
    if (plan != nullptr)
      for (const Transform& step : plan->steps)
        cast = cast || step.kind == TransformKind::cast || step.kind == TransformKind::offset;
    if (have.shape != shape) {
      const std::string want = shape == w.shape ? expected_shape(w) : shape_text(shape) + ", of which " + text_of(*plan) + " makes " + expected_shape(w);
      differ("shape", "shape " + shape_text(have.shape), "expected " + want, i, t);
      same = false;
    }
    if (w.dtype && !cast) {
      const Encoding want = encoding_of(*w.dtype);
      const auto castable = [](Encoding e) { return e == Encoding::f32 || e == Encoding::bf16; };
      if (have.encoding != want && !(options_.auto_cast && castable(have.encoding) && castable(want))) {
        differ("dtype", "stored as " + std::string(name(have.encoding)), "declared as " + std::string(name(want)), i,
               t);
        same = false;
      }
    } else if (!is_loadable(have.encoding)) {
      const bool f8 = have.encoding == Encoding::f8_e4m3 || have.encoding == Encoding::f8_e5m2;
      differ("dtype", "stored as " + std::string(name(have.encoding)),
             f8 ? "which means nothing without its scales: an `encode` rule says where they are"
                : "which stands for no real numbers", i, t);
      same = false;
    }
    return same;
  }
  static std::string text_of(const TransformPlan& plan) {
    std::string s;
    for (const Transform& t : plan.steps) s += (s.empty() ? "" : ", ") + text(t);
    return s;
  }

  void differ(const char* kind, std::string found, std::string expected, std::size_t weight, std::size_t tensor) {
    // Alike differences of alike weights become one problem.
    const std::string key = std::string(kind) + '\n' + found + '\n' + expected + '\n' + weights_[weight].where;
    const auto [at, fresh] = differing_at_.emplace(key, differing_.size());
    if (fresh) differing_.push_back({kind, std::move(found), std::move(expected), {}, {}});
    differing_[at->second].weights.push_back(weight);
    differing_[at->second].tensors.push_back(tensor);
  }

  // Rules that cannot make the weights they name, one problem for each reason.
  void report_unfit() {
    std::map<std::string, std::vector<std::string>> by_reason;
    std::map<std::string, std::string> where;
    for (const auto& [i, why] : unfit_) {
      by_reason[why].push_back(weights_[i].name);
      where.emplace(why, weights_[i].where);
    }
    for (const auto& [why, names] : by_reason)
      for (const NamePattern& group : group_names(names)) {
        Problem p;
        p.kind = "layout";
        p.where = where[why];
        p.message = printable(group.text) + ": " + why;
        out_.problems.push_back(std::move(p));
      }
  }

  // Tensors of which some parts are there.
  void report_parts() {
    for (const auto& [encoding, all] : incomplete_) {
      std::vector<std::string> names;
      for (const Incomplete& x : all) names.push_back(x.name);
      for (const NamePattern& group : group_names(names)) {
        const Incomplete& first = all[group.members[0]];
        std::vector<std::string> lacking;
        for (std::size_t m : group.members) lacking.insert(lacking.end(), all[m].lacking.begin(), all[m].lacking.end());
        Problem p;
        p.kind = "parts";
        const TensorInfo& t = index_.tensors()[first.have];
        p.message = printable(group.text) + " is stored as " + encoding + ", and not all of its parts are there";
        p.notes.push_back(printable(t.name) + " is, as " + std::string(name(t.encoding)) + " " + shape_text(t.shape) + " in " + found_in(index_, t));
        for (const std::string& line : name_lines(lacking, 4)) p.notes.push_back("missing: " + line);
        p.help = "codes mean nothing without their scales: a file is missing, or the tensor was saved without them";
        out_.problems.push_back(std::move(p));
      }
    }
  }

  void report_missing() {
    std::vector<std::string> names, file_names, spare;
    for (const Missing& m : missing_) {
      names.push_back(weights_[m.weight].name);
      file_names.push_back(m.file_names.empty() ? weights_[m.weight].name : m.file_names.front());
    }
    for (std::size_t t : unexpected_) spare.push_back(index_.tensors()[t].name);
    const NearNames near(spare);
    for (const NamePattern& group : group_names(names)) {
      const Missing& m = missing_[group.members[0]];
      const MappingWeight& w = weights_[m.weight];
      const std::string& file_name = file_names[group.members[0]];
      Problem p;
      p.kind = "missing-weight";
      p.where = w.where;
      std::vector<std::string> wanted;
      for (std::size_t i : group.members) {
        const auto& lacking = missing_[i].file_names;
        if (lacking.empty()) wanted.push_back(file_names[i]);
        wanted.insert(wanted.end(), lacking.begin(), lacking.end());
      }
      const bool in_part = m.of > 1 && m.file_names.size() < m.of;
      p.message = printable(group.text) +
                  (in_part            ? ": of the " + grouped(static_cast<std::uint64_t>(m.of)) + " tensors that make it the checkpoint lacks " + grouped(static_cast<std::uint64_t>(m.file_names.size()))
                   : group.count == 1 ? ": the checkpoint has no such tensor"
                                      : ": the checkpoint has none of these " +
                                            grouped(static_cast<std::uint64_t>(group.count)));
      if (m.of > 1)
        for (const std::string& line : name_lines(wanted, 4)) p.notes.push_back("missing: " + line);
      else if (file_name != w.name) p.notes.push_back("looked for as " + printable(file_name));
      p.notes.push_back("expected " + expected_shape(w));
      for (auto& n : declaration(w)) p.notes.push_back(std::move(n));
      if (m.off != nullptr) explain_alias(m, p);
      else if (auto help = near.instead_of(wanted)) p.help = "did you mean " + *help + ", which no weight asks for?";
      else if (auto has = tensors_alike(file_name); !has.empty()) p.help = "the checkpoint has " + has;
      else
        p.help = "a file may be missing, or the model is another one; `modelc inspect` lists what the checkpoint has";
      out_.problems.push_back(std::move(p));
    }
  }

  // Two facts stand against each other: the config says that there is no alias, the files hold no tensor.
  void explain_alias(const Missing& m, Problem& p) const {
    const MappingRules::Alias& rule = *m.off->rule;
    const auto captures = m.off->weight.match(weights_[m.weight].name);
    const std::string target = m.off->target.fill(*captures).value_or(rule.target);
    p.notes.push_back("`alias " + rule.weight + " = " + rule.target + " when " + rule.when + "` does not hold" +
                      (rule.because.empty() ? "" : ": " + rule.because));
    const auto t = tensor_of(names_.in_file(target));
    std::string set = "make `" + rule.when + "` true";
    const std::size_t equals = rule.because.find(" = ");
    if (equals != std::string::npos) set = "say so with --set " + rule.because.substr(0, equals) + "=true";
    if (t && index_.tensors()[*t].shape == weights_[m.weight].shape)
      p.help = "if it is " + target + " that serves as " + weights_[m.weight].name + ", " + set +
               "; if not, the checkpoint lacks a file, or was saved without it";
    else
      p.help = "the checkpoint lacks a file, or was saved without it";
  }

  void report_unexpected() {
    std::vector<std::string> names, free_names;
    for (std::size_t t : unexpected_) names.push_back(index_.tensors()[t].name);
    for (const Missing& m : missing_) free_names.insert(free_names.end(), m.file_names.begin(), m.file_names.end());
    if (names.empty()) return;
    const NearNames near(free_names);
    if (!options_.strict) {
      for (const std::string& line : name_lines(names)) out_.notes.push_back("not asked for: " + line);
      return;
    }
    for (const NamePattern& group : group_names(names)) {
      Problem p;
      p.kind = "unexpected-tensor";
      const TensorInfo& t = index_.tensors()[unexpected_[group.members[0]]];
      p.message = printable(group.text) + (group.count == 1
                                               ? ": no weight of the model asks for this tensor"
                                               : ": no weight of the model asks for these " +
                                                     grouped(static_cast<std::uint64_t>(group.count)) + " tensors");
      p.notes.push_back(std::string(name(t.encoding)) + " " + shape_text(t.shape) + " in " + found_in(index_, t) +
                        more_files(group.members, unexpected_));
      std::vector<std::string> here;
      for (std::size_t i : group.members) here.push_back(names[i]);
      if (auto help = near.instead_of(here)) p.help = "did you mean " + *help + ", which is missing?";
      else if (auto has = weights_alike(names[group.members[0]]); !has.empty()) p.help = "the model has " + has;
      else p.help = "if nothing needs " + std::string(group.count == 1 ? "it" : "them") +
                    ", the checkpoint block can say `ignore " + as_rule(group) + "`, or --no-strict allows it";
      out_.problems.push_back(std::move(p));
    }
  }

  std::string tensors_alike(const std::string& name) {
    return tensors_alike_.of(name, [&](auto&& add) {
      for (const TensorInfo& t : index_.tensors()) add(t.name);
    });
  }
  std::string weights_alike(const std::string& name) {
    return weights_alike_.of(name, [&](auto&& add) {
      for (const MappingWeight& w : weights_) add(names_.in_file(w.name));
    });
  }

  void report_differing() {
    for (const Differing& d : differing_) {
      std::vector<std::string> names;
      for (std::size_t i : d.weights) names.push_back(weights_[i].name);
      std::vector<std::size_t> all(d.tensors.size());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
      for (const NamePattern& group : group_names(names)) {
        const std::size_t first = group.members[0];
        const MappingWeight& w = weights_[d.weights[first]];
        const TensorInfo& t = index_.tensors()[d.tensors[first]];
        Problem p;
        p.kind = d.kind;
        p.where = w.where;
        p.message = printable(group.text) +
                    (group.count > 1 ? ", " + grouped(static_cast<std::uint64_t>(group.count)) + " weights" : "") +
                    ": " + d.found + " in " + found_in(index_, t) + more_files(group.members, d.tensors) + ", " +
                    d.expected;
        if (t.name != w.name) p.notes.push_back("the tensor is " + printable(t.name));
        for (auto& n : declaration(w)) p.notes.push_back(std::move(n));
        if (d.kind == "dtype" && w.dtype && (t.encoding == Encoding::f32 || t.encoding == Encoding::bf16) &&
            (*w.dtype == DType::f32 || *w.dtype == DType::bf16))
          p.help = "--auto-cast converts between f32 and bf16";
        out_.problems.push_back(std::move(p));
      }
    }
  }

  // " and 3 more files", when the tensors do not lie in one.
  std::string more_files(const std::vector<std::size_t>& members, const std::vector<std::size_t>& tensors) const {
    std::vector<std::uint32_t> files;
    for (std::size_t m : members) files.push_back(index_.tensors()[tensors[m]].file);
    std::sort(files.begin(), files.end());
    files.erase(std::unique(files.begin(), files.end()), files.end());
    return files.size() < 2 ? "" : " and " + counted(files.size() - 1, "more file");
  }

  const std::vector<MappingWeight>& weights_;
  const CheckpointIndex& index_;
  MappingOptions options_;
  const std::vector<MappingRules::Set>& sets_;
  std::string architecture_;
  WeightRules names_;
  std::vector<Alias> aliases_;
  std::vector<Bounded> ignores_, encodes_;
  struct Incomplete { std::string name; std::size_t have; std::vector<std::string> lacking; };
  std::map<std::string, std::vector<Incomplete>> incomplete_;                // by encoding
  std::vector<std::pair<std::size_t, std::string>> unfit_;                   // weight, why
  std::set<std::string> settled_;                                            // weights whose `one_of` is a problem
  std::map<std::string, std::vector<std::string>> made_;                     // weights by what `via` says of them
  Mapping out_;
  std::vector<bool> needed_;                               // per tensor of the file
  std::vector<Missing> missing_;
  std::vector<std::size_t> unexpected_;
  std::vector<Differing> differing_;
  std::unordered_map<std::string, std::size_t> differing_at_;
  std::map<std::string, std::vector<std::string>> used_ignores_;
  AlikeNames tensors_alike_, weights_alike_;
};

}  // namespace

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

Error as_error(const Mapping& mapping, std::size_t cap) {
  assert(!mapping.problems.empty());
  Error e;
  e.kind = "checkpoint";
  std::map<std::string, std::uint64_t> kinds;
  for (const Problem& p : mapping.problems) ++kinds[p.kind];
  e.message = mapping.checkpoint + " does not fit the model: " + counted(mapping.problems.size(), "problem");
  for (std::size_t i = 0; i < mapping.problems.size() && i < cap; ++i) {
    const Problem& p = mapping.problems[i];
    std::string line = p.message;
    for (const std::string& n : p.notes) line += "; " + n;
    e.notes.push_back(std::move(line));
    if (!p.help.empty()) e.notes.push_back("  " + p.help);
  }
  if (mapping.problems.size() > cap)
    e.notes.push_back("… and " + counted(mapping.problems.size() - cap, "more problem"));
  return e;
}

}  // namespace modelc
