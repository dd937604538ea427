#include "codegen/emit/cpp/names.h"

#include <algorithm>

namespace modelc::emit {

namespace {

// What modelc::Module and modelc::Model declare, and what generated classes declare themselves.
Scope base_names() {
  return Scope({"type_name",
                "qualified_name",
                "member",
                "to",
                "children",
                "descendants",
                "local_parameters",
                "parameters",
                "members",
                "bind",
                "name_of",
                "product",
                "once",
                "name",
                "entries",
                "context",
                "placement",
                "root",
                "arena_bytes",
                "new_state",
                "call",
                "logits",
                "vocabulary",
                "add_layer_hook",
                "remove_layer_hook",
                "clear_hooks",
                "load_report",
                "device",
                "load",
                "load_weights",
                "run",
                "s",
                "on",
                "b",
                "binder",
                "once_buffers",
                "at",
                "axes",
                "kernels",
                "math",
                "Batch",
                "Sequences",
                "StepSizes",
                "MapArgs",
                "MapKernel",
                "Step",
                "Tensor",
                "entry",
                "inputs",
                "outputs",
                "checkpoint",
                "options",
                "state"});
}

bool is_plain_leaf(const graph::Class& c) { return c.leaf && c.consts.empty() && c.states.empty() && c.children.empty(); }

std::string leaf_key(const graph::Class& c) {
  std::string key = c.definition;
  for (const graph::WeightDecl& w : c.weights) key += "|" + w.name + "@" + w.path;
  return key;
}

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t dot = std::min(path.find('.', at), path.size());
    if (dot > at) parts.push_back(path.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

bool is_number(const std::string& s) { return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos; }

}  // namespace

Names::Names(const plan::Program& p, const Options& options) : program(p), vulkan(options.vulkan) {
  // A class called as a member of the base class is would be hidden by it.
  Scope types = base_names();
  for (const char* own : {"axis_table", "entry_table", "rule_table"}) types.unique(own);
  const std::string root = types.unique(options.class_name);
  types.unique(root + "Config");
  types.unique(snake_case(root) + "_factory");
  const auto& graph_classes = p.graph->classes;
  std::map<std::string, std::string> leaves;
  std::map<std::string, int> definitions;        // how many structs a definition needs
  classes.resize(graph_classes.size());
  for (std::size_t i = 0; i < graph_classes.size(); ++i) {
    const graph::Class& c = graph_classes[i];
    ClassNames& n = classes[i];
    n.plain_leaf = is_plain_leaf(c) && i != p.graph->root.index;
    if (i == p.graph->root.index) {
      n.type = root;
    } else if (n.plain_leaf) {
      const auto [it, fresh] = leaves.try_emplace(leaf_key(c), "");
      if (fresh) it->second = types.unique(c.definition);
      n.first = fresh;
      n.type = it->second;
    } else {
      n.type = types.unique(c.definition);
      while (types.taken(n.type + "Buffers")) n.type = types.unique(c.definition);
    }
    types.unique(n.type + "Buffers");                                       // the struct of its functions' buffers
  }
  for (std::size_t i = 0; i < graph_classes.size(); ++i) {
    const graph::Class& c = graph_classes[i];
    ClassNames& n = classes[i];
    n.scope = base_names();
    for (const ClassNames& other : classes) n.scope.unique(other.type);     // a member is never called like a type
    n.scope.unique(n.type + "Buffers");
    for (const graph::Function& f : c.functions) n.scope.unique(n.type + "_" + identifier(f.name) + "Buffers");
    for (const graph::Function& f : c.functions)
      if (f.kind != graph::FunctionKind::init) n.functions[f.name] = n.scope.unique(f.name);
    for (const graph::WeightDecl& w : c.weights) n.members[w.name] = n.scope.unique(w.name);
    for (const graph::ConstDecl& k : c.consts) n.members[k.name] = n.scope.unique(k.name);
    for (const graph::StateDecl& s : c.states) n.members[s.name] = n.scope.unique(s.name);
    for (const graph::ChildDecl& m : c.children) n.members[m.name] = n.scope.unique(m.name);
    Scope packs, once;                                                       // in structs of their own
    for (const plan::Pack& k : p.classes[i].packs) n.packs.push_back(packs.unique(k.name));
    for (const plan::StepValue& v : p.classes[i].step_values) n.once.push_back(once.unique(v.name));
  }
  Scope kernel_names;
  for (const plan::MapKernel& k : p.kernels) kernels.push_back(kernel_names.unique(k.name));
  for (const graph::Shader& s : p.graph->shaders) shaders.push_back(kernel_names.unique(s.op + "_shader"));
  Scope host_names;
  for (const graph::HostCode& h : p.graph->host_code) host.push_back(host_names.unique(h.op));
}

std::string Names::path(graph::ClassId from, const std::string& member) const {
  std::string s;
  graph::ClassId at = from;
  const graph::ChildDecl* list = nullptr;
  for (const std::string& part : components(member)) {
    if (list && is_number(part)) {
      s += "[" + part + "]";
      const std::size_t index = std::min<std::size_t>(std::stoul(part.substr(0, 9)), list->elements.size() - 1);
      at = list->elements[index];
      const auto other = [&](graph::ClassId e) { return classes[e.index].type != classes[at.index].type; };
      if (std::any_of(list->elements.begin(), list->elements.end(), other))    // a variant of the types
        s = "std::get<" + classes[at.index].type + ">(" + s + ")";
      list = nullptr;
      continue;
    }
    const graph::Class& c = program.graph->of(at);
    const auto name = classes[at.index].members.find(part);
    s += (s.empty() ? "" : ".") + (name != classes[at.index].members.end() ? name->second : identifier(part));
    list = nullptr;
    for (const graph::ChildDecl& m : c.children) {
      if (m.name != part) continue;
      if (m.list) list = &m;
      else if (!m.elements.empty()) at = m.elements[0];
    }
  }
  return s;
}

}  // namespace modelc::emit
