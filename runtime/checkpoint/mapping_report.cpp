// What is said of a mapping that does not fit: one problem for one cause, alike names together.
#include <algorithm>
#include <cassert>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/mapper.h"

namespace modelc {
namespace {

std::vector<std::string> declaration(const MappingWeight& w) {
  std::vector<std::string> notes;
  if (!w.where.empty()) notes.push_back("declared at " + w.where);
  notes.insert(notes.end(), w.origins.begin(), w.origins.end());
  return notes;
}

}  // namespace

// "[heads * d, hidden_size] = [4 * 16, 40]"
std::string Mapper::expected_shape(const MappingWeight& w) {
  const std::string plain = shape_text(w.shape);
  if (w.formula.empty()) return plain;
  const std::string numbers = w.numbers.empty() ? plain : w.numbers;
  return w.formula == numbers ? plain : w.formula + " = " + numbers;
}

// One line for all that auto_cast does.
void Mapper::note_casts() {
  std::string line;
  for (const auto& [cast, n] : casts_)
    line += (line.empty() ? "auto-cast: " : ", ") + counted(n, "weight") + " from " + std::string(name(cast.first)) + " to " +
            std::string(name(cast.second)) + (cast.second == DType::bf16 ? " (precision loss)" : "");
  if (!line.empty()) out_.notes.push_back(std::move(line));
}

// Weights that were handed in: those that took a place, and those that the model does not have.
void Mapper::report_given() {
  for (const std::string& line : name_lines(given_, 4)) out_.notes.push_back("given by the caller: " + line);
  if (options_.given == nullptr) return;
  std::vector<std::string> unknown, all;
  for (const auto& [name, value] : *options_.given)
    if (names_.weight_called(name) == nullptr) unknown.push_back(name);
  if (unknown.empty()) return;
  for (const MappingWeight& w : weights_) all.push_back(w.name);
  const NearNames near(all);
  for (const NamePattern& group : group_names(unknown)) {
    std::vector<std::string> here;
    for (std::size_t m : group.members) here.push_back(unknown[m]);
    Problem p;
    p.kind = "unknown-weight";
    p.message =
        printable(group.text) + (group.count == 1 ? ": the model has no such weight, and one was given"
                                                  : ": the model has none of these " + grouped(static_cast<std::uint64_t>(group.count)) +
                                                        " weights, and they were given");
    if (auto help = near.instead_of(here)) p.help = "did you mean " + *help + "?";
    else p.help = "weights are given by the model's own names, as parameters() has them";
    out_.problems.push_back(std::move(p));
  }
}

// Rules that cannot make the weights they name, one problem for each reason.
void Mapper::report_unfit() {
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
void Mapper::report_parts() {
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
      p.notes.push_back(printable(t.name) + " is, as " + std::string(name(t.encoding)) + " " + shape_text(t.shape) + " in " + found_in(t));
      for (const std::string& line : name_lines(lacking, 4)) p.notes.push_back("missing: " + line);
      p.help = "codes mean nothing without their scales: a file is missing, or the tensor was saved without them";
      out_.problems.push_back(std::move(p));
    }
  }
}

namespace {

// The element of a list that a name is below, by the first number in it: "model.layers", 12.
struct Element {
  std::string list;
  std::uint64_t index = 0;
};
std::optional<Element> element_of(std::string_view name) {
  std::size_t at = 0;
  for (std::string_view part : split(name, '.')) {
    const auto n = part.size() == 1 || !part.starts_with('0') ? parse_uint(part) : std::nullopt;
    if (n && at > 0) return Element{std::string(name.substr(0, at - 1)), *n};
    at += part.size() + 1;
  }
  return std::nullopt;
}
// Of one list: how many names each element has, and how many of them are left over.
struct Elements {
  std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> all;
};

// "model.layers.{2,3}"
std::string elements_text(const std::string& list, const std::vector<std::uint64_t>& indices) {
  return printable(list) + "." + number_set(indices);
}

}  // namespace

// What the configuration counts so often: "num_hidden_layers = 3 from config.json:17".
std::vector<std::string> Mapper::counted_by(std::uint64_t count) const {
  std::vector<std::string> out;
  if (!index_.config) return out;
  const auto look = [&](const Json& object, const std::string& path) {
    if (const JsonObject* members = object.as_object())
      for (const JsonMember& m : *members)
        if (m.value.as_uint() == count && (m.key.find("layer") != std::string::npos || m.key.find("block") != std::string::npos))
          out.push_back(path + m.key + " = " + std::to_string(count) + " from config.json:" + std::to_string(m.value.line()));
  };
  look(index_.config->root, "");
  if (const JsonObject* members = index_.config->root.as_object())
    for (const JsonMember& m : *members) look(m.value, m.key + ".");
  return out;
}

// Elements of a list that the checkpoint has nothing of, while it has others: the two disagree on the list's length.
void Mapper::report_short_lists() {
  std::map<std::string, Elements> lists;
  for (const MappingWeight& w : weights_)
    if (!w.has_default)
      if (const auto e = element_of(w.name)) ++lists[e->list].all[e->index].first;
  for (const Missing& m : missing_)
    if (const auto e = element_of(weights_[m.weight].name)) ++lists[e->list].all[e->index].second;
  for (const auto& [list, elements] : lists) {
    std::vector<std::uint64_t> none, some;
    std::size_t lacking = 0;
    for (const auto& [index, n] : elements.all) {
      const bool whole = n.first > 1 && n.first == n.second;
      (whole ? none : some).push_back(index);
      if (whole) lacking += n.first;
    }
    if (none.empty() || some.empty()) continue;
    Problem p;
    p.kind = "list-length";
    p.message = elements_text(list, none) + ": the checkpoint has none of the " + counted(lacking, "weight") + " of " +
                (none.size() == 1 ? "this element" : "these " + std::to_string(none.size()) + " elements");
    p.notes.push_back("it has " + elements_text(list, some));
    for (std::string& n : counted_by(elements.all.rbegin()->first + 1)) p.notes.push_back(std::move(n));
    p.help = "configuration and checkpoint are of two models, or a file of the checkpoint is missing";
    std::erase_if(missing_, [&](const Missing& m) {
      const auto e = element_of(weights_[m.weight].name);
      if (!e || e->list != list || std::find(none.begin(), none.end(), e->index) == none.end()) return false;
      if (p.where.empty()) p.where = weights_[m.weight].where;
      return true;
    });
    out_.problems.push_back(std::move(p));
  }
}

// The other way round: elements that the model does not have.
void Mapper::report_long_lists() {
  if (!options_.strict || unexpected_.empty()) return;
  std::map<std::string, Elements> lists;
  for (const TensorInfo& t : index_.tensors())
    if (const auto e = element_of(t.name)) ++lists[e->list].all[e->index].first;
  for (std::size_t t : unexpected_)
    if (const auto e = element_of(index_.tensors()[t].name)) ++lists[e->list].all[e->index].second;
  std::map<std::string, std::set<std::uint64_t>> model;
  for (const MappingWeight& w : weights_)
    if (const auto e = element_of(names_.in_file(w.name))) model[e->list].insert(e->index);
  for (const auto& [list, elements] : lists) {
    const auto known = model.find(list);
    if (known == model.end()) continue;
    std::vector<std::uint64_t> further;
    std::size_t tensors = 0;
    for (const auto& [index, n] : elements.all)
      if (n.first > 1 && n.first == n.second && !known->second.contains(index)) {
        further.push_back(index);
        tensors += n.first;
      }
    if (further.empty()) continue;
    const std::vector<std::uint64_t> have(known->second.begin(), known->second.end());
    Problem p;
    p.kind = "list-length";
    p.message = elements_text(list, further) + ": the checkpoint has " + counted(tensors, "tensor") + " of " +
                (further.size() == 1 ? "this element" : "these " + std::to_string(further.size()) + " elements") +
                ", which the model does not have";
    p.notes.push_back("the model has " + elements_text(list, have));
    for (std::string& n : counted_by(have.back() + 1)) p.notes.push_back(std::move(n));
    p.help = "configuration and checkpoint are of two models; or if nothing needs them, the checkpoint block can say `ignore " +
             elements_text(list, {further.front()}) + ".**`, or --no-strict allows them";
    std::erase_if(unexpected_, [&](std::size_t t) {
      const auto e = element_of(index_.tensors()[t].name);
      return e && e->list == list && std::find(further.begin(), further.end(), e->index) != further.end();
    });
    out_.problems.push_back(std::move(p));
  }
}

void Mapper::report_missing() {
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
                (in_part ? ": of the " + grouped(static_cast<std::uint64_t>(m.of)) + " tensors that make it the checkpoint lacks " +
                               grouped(static_cast<std::uint64_t>(m.file_names.size()))
                 : group.count == 1 ? ": the checkpoint has no such tensor"
                                    : ": the checkpoint has none of these " + grouped(static_cast<std::uint64_t>(group.count)));
    if (m.of > 1)
      for (const std::string& line : name_lines(wanted, 4)) p.notes.push_back("missing: " + line);
    else if (file_name != w.name) p.notes.push_back("looked for as " + printable(file_name));
    p.notes.push_back("expected " + expected_shape(w));
    for (auto& n : declaration(w)) p.notes.push_back(std::move(n));
    if (m.off != nullptr) explain_alias(m, p);
    else if (auto help = near.instead_of(wanted)) p.help = "did you mean " + *help + ", which no weight asks for?";
    else if (auto has = tensors_alike(file_name); !has.empty()) p.help = "the checkpoint has " + has;
    else p.help = "a file may be missing, or the model is another one; `modelc inspect` lists what the checkpoint has";
    out_.problems.push_back(std::move(p));
  }
}

// Two facts stand against each other: the config says that there is no alias, the files hold no tensor.
void Mapper::explain_alias(const Missing& m, Problem& p) const {
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
  else p.help = "the checkpoint lacks a file, or was saved without it";
}

void Mapper::report_unexpected() {
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
    p.message = printable(group.text) + (group.count == 1 ? ": no weight of the model asks for this tensor"
                                                          : ": no weight of the model asks for these " +
                                                                grouped(static_cast<std::uint64_t>(group.count)) + " tensors");
    p.notes.push_back(std::string(name(t.encoding)) + " " + shape_text(t.shape) + " in " + found_in(t) +
                      more_files(group.members, unexpected_));
    std::vector<std::string> here;
    for (std::size_t i : group.members) here.push_back(names[i]);
    if (auto help = near.instead_of(here)) p.help = "did you mean " + *help + ", which is missing?";
    else if (auto has = weights_alike(names[group.members[0]]); !has.empty()) p.help = "the model has " + has;
    else
      p.help = "if nothing needs " + std::string(group.count == 1 ? "it" : "them") + ", the checkpoint block can say `ignore " +
               as_rule(group) + "`, or --no-strict allows it";
    out_.problems.push_back(std::move(p));
  }
}

std::string Mapper::tensors_alike(const std::string& name) {
  return tensors_alike_.of(name, [&](auto&& add) {
    for (const TensorInfo& t : index_.tensors()) add(t.name);
  });
}

std::string Mapper::weights_alike(const std::string& name) {
  return weights_alike_.of(name, [&](auto&& add) {
    for (const MappingWeight& w : weights_) add(names_.in_file(w.name));
  });
}

void Mapper::report_differing() {
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
      p.message = printable(group.text) + (group.count > 1 ? ", " + grouped(static_cast<std::uint64_t>(group.count)) + " weights" : "") +
                  ": " + d.found + " in " + found_in(t) + more_files(group.members, d.tensors) + ", " + d.expected;
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
std::string Mapper::more_files(const std::vector<std::size_t>& members, const std::vector<std::size_t>& tensors) const {
  std::vector<std::uint32_t> files;
  for (std::size_t m : members) files.push_back(index_.tensors()[tensors[m]].file);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files.size() < 2 ? "" : " and " + counted(files.size() - 1, "more file");
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
  if (mapping.problems.size() > cap) e.notes.push_back("… and " + counted(mapping.problems.size() - cap, "more problem"));
  return e;
}

}  // namespace modelc
