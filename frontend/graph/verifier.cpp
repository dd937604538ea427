#include "frontend/graph/verifier.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_set>

#include "frontend/graph/members.h"
#include "frontend/graph/types.h"
#include "frontend/graph/verify_function.h"
#include "frontend/graph/verify_moves.h"
#include "runtime/base/device_name.h"
#include "runtime/base/strings.h"

namespace modelc::graph {

namespace {

constexpr std::size_t max_state_rank = 8;
constexpr std::int64_t max_state_elements = std::int64_t{1} << 40;

bool is_identifier(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  return std::all_of(s.begin(), s.end(),
                     [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); });
}

// Floats may be anything; integers and bools a small whole number.
bool may_default(const Type& type, double value) {
  if (type.kind != TypeKind::tensor) return false;
  return is_float(type.dtype) || (std::abs(value) <= 0x1p31 && value == std::floor(value));
}

class Verifier {
 public:
  explicit Verifier(const Module& m) : m_(m), dims_(m.dims) {}

  std::vector<std::string> run() {
    axes();
    if (m_.context && *m_.context < 1) fault("context", "is not at least 1");
    if (m_.root.index >= m_.classes.size()) fault("root", "is no class");
    placement();
    std::set<std::string> names;
    for (std::uint32_t i = 0; i < m_.classes.size(); ++i) {
      const Class& c = m_.classes[i];
      if (!is_identifier(c.name)) fault("class \"" + c.name + "\"", "the name is no identifier");
      if (!names.insert(c.name).second) fault("class " + c.name, "the name is taken twice");
      children(ClassId{i}, c);
    }
    for (const Class& c : m_.classes) {
      members(c);
      functions(c);
    }
    if (!faults_.empty()) return std::move(faults_);                          // what follows stands on all that
    weight_names();
    for (std::uint32_t i = 0; i < m_.classes.size(); ++i)
      for (const Function& f : m_.classes[i].functions) verify_function(m_, dims_, ClassId{i}, f, faults_);
    if (faults_.empty()) verify_moves(m_, faults_);
    return std::move(faults_);
  }

 private:
  void fault(const std::string& where, const std::string& what) { faults_.push_back(where + ": " + what); }

  void placement() {
    for (const PlaceRule& r : m_.placement) {
      const std::string where = "place " + quote(r.pattern);
      if (r.pattern.empty()) fault(where, "the pattern is empty");
      if (r.first.value_or(0) < 0 || r.end.value_or(INT64_MAX) < r.first.value_or(0))
        fault(where, "the range is negative or ends before it begins");
      const auto name = read_device_name(r.device);
      if (!name || name->text() != r.device) fault(where, "there is no device " + quote(r.device) + ": cpu or vulkan:N");
    }
  }

  void axes() {
    std::set<std::string> names;
    for (const Axis& a : m_.dims.axes()) {
      if (!is_identifier(a.name) || a.name == "div") fault("axis \"" + a.name + "\"", "the name is no identifier");
      if (!names.insert(a.name).second) fault("axis " + a.name, "the name is taken twice");
      if (a.lo < 0 || a.by < 1 || (a.hi && *a.hi < a.lo)) fault("axis " + a.name, "the range is empty or negative");
    }
  }

  // First of all: paths are only followed once every class stands after those that it contains.
  void children(ClassId id, const Class& c) {
    for (const ChildDecl& d : c.children) {
      if (!d.list && d.elements.size() != 1) fault(c.name + "." + d.name, "a single child has one element");
      for (ClassId e : d.elements) {
        if (e.index < id.index) continue;
        fault(c.name + "." + d.name,
              e.index < m_.classes.size() ? "class " + m_.of(e).name + " must stand before it" : "there is no such class");
        break;
      }
    }
  }

  void members(const Class& c) {
    std::set<std::string> names;
    auto name = [&](const std::string& n) {
      if (!is_identifier(n)) fault(c.name + ".\"" + n + "\"", "the name is no identifier");
      if (!names.insert(n).second) fault(c.name + "." + n, "the name is taken twice");
    };
    for (const WeightDecl& w : c.weights) {
      name(w.name);
      weight(c, w);
    }
    for (const ConstDecl& d : c.consts) {
      name(d.name);
      constant(c, d);
    }
    for (const StateDecl& d : c.states) {
      name(d.name);
      state(c, d);
    }
    for (const ChildDecl& d : c.children) name(d.name);
    if (c.leaf && (!c.states.empty() || !c.children.empty())) fault(c.name, "a leaf has no state and no children");

    std::set<std::pair<char, std::uint32_t>> declared;
    auto all = [&](char kind, std::size_t n) {
      for (std::uint32_t i = 0; i < n; ++i) declared.emplace(kind, i);
    };
    all('w', c.weights.size());
    all('c', c.consts.size());
    all('s', c.states.size());
    all('m', c.children.size());
    if (c.order.size() != declared.size() || std::set(c.order.begin(), c.order.end()) != declared)
      fault(c.name, "the order does not name each member once");
  }

  void weight(const Class& c, const WeightDecl& w) {
    const std::string where = c.name + "." + w.name;
    if (w.path.empty()) fault(where, "a weight needs a path");
    if (w.type.kind != TypeKind::tensor) return fault(where, "a weight is a tensor");
    if (const std::string wrong = type_fault(w.type, dims_); !wrong.empty()) return fault(where, wrong);
    for (DimId d : w.type.shape)
      if (!dims_.is_constant(d)) fault(where, "the shape " + text(w.type, dims_) + " is not known at compile time");
  }

  void constant(const Class& c, const ConstDecl& d) {
    const std::string where = c.name + "." + d.name;
    if (const std::string wrong = type_fault(d.type, dims_); !wrong.empty()) return fault(where, wrong);
    if (d.init.index >= c.functions.size()) return fault(where, "there is no function that computes it");
    const Function& f = c.functions[d.init.index];
    if (f.kind != FunctionKind::init) return fault(where, f.name + " is no init function");
    if (!f.inputs.empty() || f.body.results.size() != 1) return fault(where, f.name + " must take nothing and give one value");
    const ValueId result = f.body.results[0];
    if (result.index < f.values.size() && f.values[result.index].type != d.type)
      fault(where, "is " + text(d.type, dims_) + ", " + f.name + " gives " + text(f.values[result.index].type, dims_));
  }

  void state(const Class& c, const StateDecl& d) {
    const std::string where = c.name + "." + d.name;
    const std::size_t wanted[] = {3, 2, 3, 0, 0};  // heads dim value_dim; rank rope; n heads dim
    const std::size_t n = wanted[static_cast<int>(d.kind)];
    const std::size_t least = d.kind == StateKind::ring ? 2 : 1;                // n and a shape; a shape
    if (n != 0 ? d.sizes.size() != n : d.sizes.size() < least || d.sizes.size() > max_state_rank)
      fault(where, "has " + std::to_string(d.sizes.size()) + " sizes, wanted " +
                       (n != 0 ? std::to_string(n) : std::to_string(least) + " to " + std::to_string(max_state_rank)));
    std::int64_t elements = 1;
    for (std::int64_t s : d.sizes) {
      if (s >= 1 && elements > max_state_elements / s) {
        fault(where, "has more than 2^40 elements for one sequence");
        break;
      }
      elements *= std::max<std::int64_t>(s, 1);
    }
    for (std::int64_t s : d.sizes)
      if (s < 1) fault(where, "a size is " + std::to_string(s));
    if (d.window && *d.window < 1) fault(where, "a window is at least 1");
  }

  void functions(const Class& c) {
    std::set<std::string> names;
    for (const Function& f : c.functions) {
      const std::string where = c.name + "." + f.name;
      if (!is_identifier(f.name)) fault(where, "the name is no identifier");
      if (!names.insert(f.name).second) fault(where, "the name is taken twice");
      if (c.leaf && f.kind != FunctionKind::init) fault(where, "a leaf has no functions but inits: its calls are expanded");
      if (f.result_names.size() != f.body.results.size())
        fault(where, std::to_string(f.result_names.size()) + " names for " + std::to_string(f.body.results.size()) + " results");
      // Types before anything looks at them, also from other functions.
      for (const Value& v : f.values)
        if (const std::string wrong = type_fault(v.type, dims_); !wrong.empty())
          fault(where, (v.name.empty() ? "a value" : "%" + v.name) + ": " + wrong);
      for (const Parameter& p : f.inputs)
        if (p.value.index >= f.values.size()) fault(where, "the input " + p.name + " is no value");
      for (ValueId v : f.body.results)
        if (v.index >= f.values.size()) fault(where, "a result is no value");
      std::set<std::string> inputs;
      for (const Parameter& p : f.inputs) {
        if (!inputs.insert(p.name).second) fault(where, "the input " + p.name + " is there twice");
        if (p.default_value && p.value.index < f.values.size() && !may_default(f.values[p.value.index].type, *p.default_value))
          fault(where, "the input " + p.name + " cannot have " + std::to_string(*p.default_value) + " by default");
      }
    }
  }

  // Weights of all instances below each class, so that the list of names stays bounded.
  void weight_names() {
    std::vector<std::int64_t> below;
    for (const Class& c : m_.classes) {
      std::int64_t n = static_cast<std::int64_t>(c.weights.size());
      for (const ChildDecl& d : c.children)
        for (ClassId e : d.elements) n = std::min(max_weight_instances + 1, n + below[e.index]);
      below.push_back(n);
    }
    if (below[m_.root.index] > max_weight_instances)
      return fault("root", "has more than " + std::to_string(max_weight_instances) + " weights");
    std::unordered_set<std::string> names;
    for (const WeightInstance& w : weight_instances(m_))
      if (!names.insert(w.name).second) fault(w.name, "two weights have this name");
  }

  const Module& m_;
  DimTable dims_;
  std::vector<std::string> faults_;
};

}  // namespace

std::string type_fault(const Type& type, const DimTable& dims) {
  if (type.kind != TypeKind::tensor) return type.shape.empty() && !type.index_bound ? "" : "a Batch has no shape";
  for (DimId d : type.shape) {
    if (d.index >= dims.size()) return "a dim that is not in the table";
    if (d == DimTable::too_large) return "a dim beyond 64 bits";
    if (const auto v = dims.value(d); v && *v < 1) return "a size of " + std::to_string(*v);
  }
  if (type.index_bound) {
    if (type.dtype != DType::i32) return "an index is i32, not " + std::string(name(type.dtype));
    if (type.index_bound->index >= dims.size() || *type.index_bound == DimTable::too_large) return "a bound that is no dim";
  }
  if (!is_value_dtype(type.dtype)) return std::string(name(type.dtype)) + " is how a file holds numbers, not a value's dtype";
  return "";
}

std::vector<std::string> verify(const Module& module) { return Verifier(module).run(); }

}  // namespace modelc::graph
