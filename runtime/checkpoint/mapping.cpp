#include "runtime/checkpoint/mapping.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <unordered_map>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/mapping_names.h"
#include "runtime/checkpoint/name_patterns.h"
#include "runtime/checkpoint/tensor_pattern.h"

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
      : weights_(weights), index_(index), options_(options), names_(rules.renames) {
    for (const auto& a : rules.aliases) aliases_.push_back({TensorPattern(a.weight), TensorPattern(a.target), &a});
    for (const auto& p : rules.ignores) ignores_.emplace_back(p);
  }

  Mapping run() {
    out_.checkpoint = index_.path;
    out_.sources.resize(weights_.size());
    needed_.assign(index_.tensors().size(), false);
    for (std::size_t i = 0; i < weights_.size(); ++i) place(i);
    for (std::size_t t = 0; t < needed_.size(); ++t)
      if (!needed_[t] && !ignored(t)) unexpected_.push_back(t);
    report_missing();
    report_unexpected();
    report_differing();
    for (const auto& [text, names] : used_ignores_)
      for (const std::string& line : name_lines(names, 4))
        out_.notes.push_back("ignored by `ignore " + text + "`: " + line);
    return std::move(out_);
  }

 private:
  struct Missing { std::size_t weight; std::string file_name; const Alias* off; };
  struct Differing { std::string kind, found, expected; std::vector<std::size_t> weights, tensors; };

  std::optional<std::size_t> tensor_of(const std::string& name) const {
    const TensorInfo* t = index_.find(name);
    if (t == nullptr) return std::nullopt;
    return static_cast<std::size_t>(t - index_.tensors().data());
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
    const std::string own_name = names_.in_file(w.name);
    const auto own = tensor_of(own_name);
    const Alias* off = nullptr;
    // a = b and b = c: the first of the chain that the file holds. More steps than aliases is a circle.
    auto target_name = alias_target(w.name, &off);
    auto target = target_name ? tensor_of(names_.in_file(*target_name)) : std::nullopt;
    for (std::size_t step = 0; target_name && !target && step < aliases_.size(); ++step) {
      const auto next = alias_target(*target_name, nullptr);
      if (!next) break;
      target_name = next;
      target = tensor_of(names_.in_file(*target_name));
    }
    if (own) needed_[*own] = true;
    if (target) {
      needed_[*target] = true;
      source.kind = WeightSource::Kind::alias;
      source.tensor = *target;
      if (own) {
        source.compare_alias = true;
        source.own_tensor = *own;
        out_.left_to_load.push_back(own_name + " is there beside its alias " + names_.in_file(*target_name) +
                                    ": whether they are equal is left to the load");
      } else {
        out_.notes.push_back(w.name + " = alias of " + *target_name);
      }
      // What is wrong with the target's own weight is said once.
      const bool same = declared_alike(*target_name, w) || compare(i, *target);
      if (own && same) compare(i, *own);
    } else if (own) {
      source.tensor = *own;
      compare(i, *own);
    } else if (w.has_default) {
      source.kind = WeightSource::Kind::default_value;
    } else if (!target_name) {
      missing_.push_back({i, own_name, off});
    } else if (!reported_as_missing(*target_name)) {       // a missing target is reported as itself: that is enough
      missing_.push_back({i, own_name, nullptr});
    }
  }

  // Whether this weight has no tensor, no default and no alias: then it stands in the report.
  bool reported_as_missing(const std::string& name) {
    const MappingWeight* w = weight_called(name);
    return w != nullptr && !w->has_default && !alias_target(name, nullptr);
  }

  const MappingWeight* weight_called(const std::string& name) {
    if (by_name_.empty())
      for (std::size_t i = 0; i < weights_.size(); ++i) by_name_.emplace(weights_[i].name, i);
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &weights_[at->second];
  }
  bool declared_alike(const std::string& target, const MappingWeight& w) {
    const MappingWeight* t = weight_called(target);
    return t != nullptr && t->shape == w.shape && t->dtype == w.dtype;
  }

  bool ignored(std::size_t t) {
    for (const TensorPattern& p : ignores_)
      if (p.matches(index_.tensors()[t].name)) {
        used_ignores_[p.text()].push_back(index_.tensors()[t].name);
        return true;
      }
    return false;
  }

  // Shape and encoding of tensor t for weight i; what differs is kept for the report.
  bool compare(std::size_t i, std::size_t t) {
    const MappingWeight& w = weights_[i];
    const TensorInfo& have = index_.tensors()[t];
    bool same = true;
    if (have.shape != w.shape) {
      differ("shape", "shape " + shape_text(have.shape), "expected " + expected_shape(w), i, t);
      same = false;
    }
    if (w.dtype) {
      const Encoding want = encoding_of(*w.dtype);
      const auto castable = [](Encoding e) { return e == Encoding::f32 || e == Encoding::bf16; };
      if (have.encoding != want && !(options_.auto_cast && castable(have.encoding) && castable(want))) {
        differ("dtype", "stored as " + std::string(name(have.encoding)), "declared as " + std::string(name(want)), i,
               t);
        same = false;
      }
    } else if (!is_loadable(have.encoding)) {
      differ("dtype", "stored as " + std::string(name(have.encoding)),
             "which is not carried out: f32, f16, bf16 and f64 are", i, t);
      same = false;
    }
    return same;
  }

  void differ(const char* kind, std::string found, std::string expected, std::size_t weight, std::size_t tensor) {
    // Alike differences of alike weights become one problem.
    const std::string key = std::string(kind) + '\n' + found + '\n' + expected + '\n' + weights_[weight].where;
    const auto [at, fresh] = differing_at_.emplace(key, differing_.size());
    if (fresh) differing_.push_back({kind, std::move(found), std::move(expected), {}, {}});
    differing_[at->second].weights.push_back(weight);
    differing_[at->second].tensors.push_back(tensor);
  }

  void report_missing() {
    std::vector<std::string> names, file_names, spare;
    for (const Missing& m : missing_) {
      names.push_back(weights_[m.weight].name);
      file_names.push_back(m.file_name);
    }
    for (std::size_t t : unexpected_) spare.push_back(index_.tensors()[t].name);
    const NearNames near(spare);
    for (const NamePattern& group : group_names(names)) {
      const Missing& m = missing_[group.members[0]];
      const MappingWeight& w = weights_[m.weight];
      Problem p;
      p.kind = "missing-weight";
      p.where = w.where;
      p.message = printable(group.text) + (group.count == 1 ? ": the checkpoint has no such tensor"
                                                            : ": the checkpoint has none of these " +
                                                                  grouped(static_cast<std::uint64_t>(group.count)));
      if (m.file_name != w.name) p.notes.push_back("looked for as " + printable(m.file_name));
      p.notes.push_back("expected " + expected_shape(w));
      for (auto& n : declaration(w)) p.notes.push_back(std::move(n));
      std::vector<std::string> wanted;
      for (std::size_t i : group.members) wanted.push_back(file_names[i]);
      if (m.off != nullptr) explain_alias(m, p);
      else if (auto help = near.instead_of(wanted)) p.help = "did you mean " + *help + ", which no weight asks for?";
      else if (auto has = tensors_alike(m.file_name); !has.empty()) p.help = "the checkpoint has " + has;
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
    for (const Missing& m : missing_) free_names.push_back(m.file_name);
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
  FileNames names_;
  std::vector<Alias> aliases_;
  std::vector<TensorPattern> ignores_;
  Mapping out_;
  std::vector<bool> needed_;                               // per tensor of the file
  std::vector<Missing> missing_;
  std::vector<std::size_t> unexpected_;
  std::vector<Differing> differing_;
  std::unordered_map<std::string, std::size_t> differing_at_, by_name_;
  std::map<std::string, std::vector<std::string>> used_ignores_;
  AlikeNames tensors_alike_, weights_alike_;
};

}  // namespace

bool is_loadable(Encoding e) {
  return e == Encoding::f32 || e == Encoding::f16 || e == Encoding::bf16 || e == Encoding::f64;
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
