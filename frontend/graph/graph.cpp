#include "frontend/graph/graph.h"

#include <charconv>

#include "frontend/graph/members.h"

namespace modelc::graph {

std::string join_path(std::string_view a, std::string_view b) {
  std::string s(a);
  if (!a.empty() && !b.empty()) s += '.';
  return s.append(b);
}

namespace {

// The first component of a path, which is cut off it.
std::string_view next_part(std::string_view& path) {
  const std::size_t dot = path.find('.');
  const std::string_view part = path.substr(0, dot);
  path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  return part;
}

std::optional<std::size_t> element_index(std::string_view part, const ChildDecl& list) {
  std::size_t i = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), i);
  if (error != std::errc() || end != part.data() + part.size() || i >= list.elements.size()) return std::nullopt;
  return i;
}

template <class T> const T* by_name(const std::vector<T>& all, std::string_view name, std::uint32_t& index) {
  for (index = 0; index < all.size(); ++index)
    if (all[index].name == name) return &all[index];
  return nullptr;
}

// Depth first in declared order; `path` is the instance's. A class comes after those of its children, so this ends.
void collect(const Module& m, ClassId id, const std::string& path, const Where& use, std::vector<WeightInstance>& out) {
  const Class& c = m.of(id);
  for (const auto& [kind, index] : c.order) {
    if (kind == 'w') {
      const WeightDecl& w = c.weights[index];
      out.push_back({join_path(path, w.path), &w, c.leaf && use.line != 0 ? use : w.where});
    } else if (kind == 'm') {
      const ChildDecl& child = c.children[index];
      const std::string below = join_path(path, child.path);
      for (std::size_t e = 0; e < child.elements.size(); ++e)
        if (child.elements[e].index < id.index)
          collect(m, child.elements[e], child.list ? join_path(below, std::to_string(e)) : below, child.where, out);
    }
  }
}

}  // namespace

std::vector<WeightInstance> weight_instances(const Module& module) {
  std::vector<WeightInstance> all;
  if (module.root.index < module.classes.size()) collect(module, module.root, "", {}, all);
  return all;
}

std::optional<MemberRef> find_member(const Module& m, ClassId from, std::string_view member) {
  MemberRef at{MemberKind::child, from, 0, ""};
  while (!member.empty()) {
    if (at.owner.index >= m.classes.size()) return std::nullopt;
    const Class& c = m.of(at.owner);
    const std::string_view part = next_part(member);
    if (const ChildDecl* child = by_name(c.children, part, at.index)) {
      at.path = join_path(at.path, child->path);
      if (child->list && member.empty()) {
        at.kind = MemberKind::list;
        return at;
      }
      std::size_t element = 0;
      if (child->list) {
        const std::string_view number = next_part(member);
        const std::optional<std::size_t> i = element_index(number, *child);
        if (!i) return std::nullopt;
        element = *i;
        at.path = join_path(at.path, number);
      }
      if (element >= child->elements.size()) return std::nullopt;
      at.owner = child->elements[element];
      at.index = 0;
      continue;
    }
    if (!member.empty()) return std::nullopt;
    if (by_name(c.weights, part, at.index) != nullptr) at.kind = MemberKind::weight;
    else if (by_name(c.consts, part, at.index) != nullptr) at.kind = MemberKind::constant;
    else if (by_name(c.states, part, at.index) != nullptr) at.kind = MemberKind::state;
    else return std::nullopt;
    return at;
  }
  return at;
}

std::optional<ClassId> find_stage(const Module& m, ClassId from, std::string_view path) {
  if (path.empty()) return from;
  if (from.index >= m.classes.size()) return std::nullopt;
  for (const ChildDecl& child : m.of(from).children) {
    // The child's path is a prefix in whole components.
    if (!path.starts_with(child.path)) continue;
    std::string_view rest = path.substr(child.path.size());
    if (!child.path.empty() && !rest.empty()) {
      if (rest[0] != '.') continue;
      rest.remove_prefix(1);
    }
    std::size_t element = 0;
    if (child.list) {
      const std::optional<std::size_t> i = element_index(next_part(rest), child);
      if (!i) continue;
      element = *i;
    }
    if (element >= child.elements.size() || child.elements[element].index >= from.index) continue;
    if (auto found = find_stage(m, child.elements[element], rest)) return found;
  }
  return std::nullopt;
}

const WeightDecl* weight_of(const Module& m, const MemberRef& r) {
  return r.kind == MemberKind::weight ? &m.of(r.owner).weights[r.index] : nullptr;
}
const ConstDecl* const_of(const Module& m, const MemberRef& r) {
  return r.kind == MemberKind::constant ? &m.of(r.owner).consts[r.index] : nullptr;
}
const StateDecl* state_of(const Module& m, const MemberRef& r) {
  return r.kind == MemberKind::state ? &m.of(r.owner).states[r.index] : nullptr;
}
const ChildDecl* list_of(const Module& m, const MemberRef& r) {
  return r.kind == MemberKind::list ? &m.of(r.owner).children[r.index] : nullptr;
}

const Function* find_function(const Class& owner, std::string_view name) {
  for (const Function& f : owner.functions)
    if (f.name == name) return &f;
  return nullptr;
}

}  // namespace modelc::graph
