// What a member path leads to. Operations name members by the names of the language: "q_proj.weight", "layers.3",
// "cache". Inside a repeat a path that begins with a dot is one of the loop's element: ".weight", ".encoder_attn"; the
// element itself is "". Instances are named by paths, which `at` may change: that is how checkpoints and traces name
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/graph/graph.h"

namespace modelc::graph {

enum class MemberKind : std::uint8_t { weight, constant, state, child, list };

struct MemberRef {
  MemberKind kind = MemberKind::child;
  // weight, constant, state: the class that declares it, and the index there. child: the child's own class (index is of
  // no use). list: the class that holds the list, and the index of its ChildDecl.
  ClassId owner;
  std::uint32_t index = 0;
  // Instance path from the class where the search began: of the owner; of a child, its own; of a list, the list's.
  std::string path;
};

// `member` from a class; "" is the class itself, as a child. None when there is no such member.
std::optional<MemberRef> find_member(const Module& module, ClassId from, std::string_view member);

// The child instance at a path of paths ("self_attn.q_proj" as a stage names it): its class.
std::optional<ClassId> find_stage(const Module& module, ClassId from, std::string_view path);

const WeightDecl* weight_of(const Module& module, const MemberRef& ref);     // null when it is no weight
const ConstDecl* const_of(const Module& module, const MemberRef& ref);
const StateDecl* state_of(const Module& module, const MemberRef& ref);
const ChildDecl* list_of(const Module& module, const MemberRef& ref);

const Function* find_function(const Class& owner, std::string_view name);

// Joined with a dot; an empty part adds nothing.
std::string join_path(std::string_view a, std::string_view b);

}  // namespace modelc::graph
