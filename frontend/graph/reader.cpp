#include "frontend/graph/reader.h"

#include <limits>
#include <map>
#include <unordered_map>

#include "frontend/graph/lexer.h"
#include "frontend/graph/ops.h"

namespace modelc::graph {

namespace {

using Kind = Token::Kind;

// What a short text could otherwise ask for without end.
constexpr std::int64_t max_elements = 1 << 16;   // of one list of children
constexpr std::int64_t max_all_elements = 1 << 20;
constexpr int max_depth = 16;                    // repeats within repeats
constexpr std::size_t max_rank = 16;
constexpr std::size_t max_axes = 256;
constexpr std::size_t max_dims = 64;             // of a custom operation

std::optional<OpKind> kind_of(std::string_view name) {
  static const std::map<std::string_view, OpKind> kinds = [] {
    std::map<std::string_view, OpKind> all;
    for (int k = 0; k <= static_cast<int>(OpKind::custom); ++k) all.emplace(info(static_cast<OpKind>(k)).name, static_cast<OpKind>(k));
    return all;
  }();
  const auto it = kinds.find(name);
  return it == kinds.end() ? std::nullopt : std::optional(it->second);
}

// Recursive descent, one token ahead (Cursor).
class Reader : Cursor {
 public:
  explicit Reader(std::string_view text) : Cursor(text) {}

  Result<Module> module() {
    expect_word("graph");
    if (integer() != 1) fail("this reader knows form 1 of the text");
    expect_word("module");
    m_.name = word();
    if (take_word("from")) m_.file = string();
    expect_word("root");
    const std::string root = word();
    const int root_line = token().line;
    while (ok() && token().kind != Kind::end) item();
    link(root, root_line);
    if (!ok()) return error();
    return std::move(m_);
  }

 private:
  // ---- the module ----
  void item() {
    if (take_word("context")) {
      m_.context = integer();
    } else if (take_word("axis")) {
      axis();
    } else if (take_word("config")) {
      ConfigFact f;
      f.name = word();
      f.type = string();
      expect("=");
      const AttrValue v = attr_value();
      if (const auto* i = std::get_if<std::int64_t>(&v)) f.value = *i;
      else if (const auto* d = std::get_if<double>(&v)) f.value = *d;
      else if (const auto* b = std::get_if<bool>(&v)) f.value = *b;
      else if (const auto* s = std::get_if<std::string>(&v)) f.value = *s;
      else fail("a configuration value is no list");
      m_.config.push_back(std::move(f));
    } else if (take_word("checkpoint")) {
      checkpoint();
    } else if (take_word("policy")) {
      PolicyRule r;
      r.pattern = take_word("of");
      if (!r.pattern) expect_word("for");
      r.target = string();
      const std::string type = word();
      const auto dtype = dtype_from_name(type);
      if (!dtype) fail("there is no type " + type);
      else r.dtype = *dtype;
      m_.policy.push_back(std::move(r));
    } else if (take_word("place")) {
      placement();
    } else if (take_word("shader")) {
      shader();
    } else if (take_word("host")) {
      host_code();
    } else if (take_word("class")) {
      one_class();
    } else {
      fail("context, axis, config, checkpoint, policy, place, shader, host or class is wanted, not " + shown());
    }
  }

  void placement() {
    PlaceRule r;
    r.pattern = string();
    if (token().kind == Kind::integer) r.first = integer();
    if (r.first) expect("..");
    if ((r.first || take("..")) && token().kind == Kind::integer) r.end = integer();
    expect_word("on");
    r.device = string();
    r.where = where();
    m_.placement.push_back(std::move(r));
  }

  void axis() {
    Axis a;
    if (token().kind != Kind::name) fail("an axis needs a name");
    a.name = word();
    expect(":");
    a.lo = integer();
    expect("..");
    if (token().kind == Kind::integer) a.hi = integer();
    if (take_word("by")) a.by = integer();
    if (m_.dims.find_axis(a.name)) fail("the axis " + a.name + " is there already");
    if (m_.dims.axes().size() >= max_axes) fail("too many axes");
    if (a.lo < 0 || a.by < 1 || (a.hi && *a.hi < a.lo)) fail("the axis " + a.name + " has an empty or negative range");
    if (ok()) m_.dims.add_axis(std::move(a));
  }

  void shader() {
    Shader s;
    s.file = string();
    expect_word("of");
    s.op = word();
    if (take_word("needs")) s.required = strings();
    s.where = place();
    expect_word("text");
    s.text = string();
    m_.shaders.push_back(std::move(s));
  }

  std::vector<DType> dtypes() {
    std::vector<DType> all;
    expect("[");
    while (ok() && !is_mark("]")) {
      const std::string type = word();
      const auto dtype = dtype_from_name(type);
      if (!dtype) fail("there is no type " + type);
      all.push_back(dtype.value_or(DType::f32));
      if (!is_mark("]")) expect(",");
    }
    expect("]");
    return all;
  }
  void host_code() {
    HostCode h;
    h.file = string();
    expect_word("of");
    h.op = word();
    expect_word("from");
    h.inputs = dtypes();
    expect_word("to");
    h.results = dtypes();
    h.where = place();
    expect_word("text");
    h.text = string();
    m_.host_code.push_back(std::move(h));
  }

  Where place() {
    Where w;
    if (!take("@")) return w;
    w.file = string();
    expect(":");
    w.line = small_integer();
    expect(":");
    w.column = small_integer();
    return w;
  }
  int small_integer() {
    const std::int64_t i = integer();
    if (i < std::numeric_limits<int>::min() || i > std::numeric_limits<int>::max()) fail("the number is too large");
    return ok() ? static_cast<int>(i) : 0;
  }

  std::string where() {
    const Where w = place();
    return w.file.empty() ? "" : w.file + ":" + std::to_string(w.line) + ":" + std::to_string(w.column);
  }
  std::string only() { return take_word("only") ? string() : ""; }
  std::vector<std::string> strings() {
    std::vector<std::string> all;
    if (token().kind != Kind::string) return all;
    do all.push_back(string());
    while (ok() && take(","));
    return all;
  }

  void checkpoint() {
    CheckpointRules c;
    c.format = word();
    if (take_word("of")) c.architecture = string();
    expect("{");
    while (ok() && !take("}")) {
      if (take_word("alias")) {
        CheckpointRules::Alias r;
        r.weight = string();
        expect("=");
        r.target = string();
        if (take_word("off")) {
          r.when = string();
          expect_word("because");
          r.because = string();
        }
        r.where = where();
        c.aliases.push_back(std::move(r));
      } else if (take_word("ignore")) {
        CheckpointRules::Ignore r;
        r.pattern = string();
        if (take_word("made")) {
          expect_word("of");
          r.made_of = string();
        }
        r.only = only();
        r.where = where();
        c.ignores.push_back(std::move(r));
      } else if (take_word("set")) {
        CheckpointRules::Set r;
        r.where = string();
        expect(":");
        r.alternatives = strings();
        c.sets.push_back(std::move(r));
      } else if (take_word("map")) {
        CheckpointRules::Map r;
        r.file = strings();
        expect("=");
        r.model = strings();
        if (take_word("via")) r.via = string();
        r.only = only();
        if (take_word("set")) {
          r.set = small_integer();
          r.alternative = small_integer();
          if (r.set < 0 || static_cast<std::size_t>(r.set) >= c.sets.size()) fail("there is no such set");
        }
        r.where = where();
        c.maps.push_back(std::move(r));
      } else if (take_word("encode")) {
        CheckpointRules::Encode r;
        r.pattern = string();
        r.only = only();
        expect_word("as");
        r.name = string();
        expect_word("of");
        r.axes = string();
        expect("{");
        while (ok() && take_word("part")) {
          CheckpointRules::Encode::Part p;
          for (std::string* to : {&p.name, &p.at, &p.dtype, &p.shape}) *to = string();
          r.parts.push_back(std::move(p));
        }
        expect_word("value");
        r.value = string();
        expect("}");
        c.encodes.push_back(std::move(r));
      } else {
        fail("alias, ignore, set, map or encode is wanted, not " + shown());
      }
    }
    m_.checkpoints.push_back(std::move(c));
  }

  // ---- types ----
  DimId dim() {
    if (!ok()) return {};
    const int line = token().line;
    const std::string_view text = raw();
    const std::optional<DimId> d = m_.dims.parse(text);
    if (!d) fail("`" + std::string(text.substr(0, 80)) + "` is no dim: whole numbers, declared axes, + - * and div(…, n)", line);
    return d.value_or(DimId{});
  }
  Type type() {
    Type t;
    const std::string name = word();
    if (name == "Batch" || name == "Sequences") {
      t.kind = name == "Batch" ? TypeKind::batch : TypeKind::sequences;
      return t;
    }
    if (name == "index") {
      t.dtype = DType::i32;
      expect("(");
      t.index_bound = dim();
      expect(")");
    } else if (const std::optional<DType> dtype = dtype_from_name(name)) {
      t.dtype = *dtype;
    } else {
      fail("`" + name + "` is no type");
    }
    expect("[");
    while (ok() && !is_mark("]")) {
      t.shape.push_back(dim());
      if (t.shape.size() > max_rank) fail("a type has too many axes");
      if (!is_mark("]")) expect(",");
    }
    expect("]");
    return t;
  }

  AttrValue attr_value() {
    if (const std::optional<double> r = try_real()) return *r;
    if (token().kind == Kind::integer) return integer();
    if (token().kind == Kind::string) return string();
    if (take_word("true")) return true;
    if (take_word("false")) return false;
    expect("[");
    if (take(".")) {
      expect("]");
      return std::vector<double>{};
    }
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    while (ok() && !is_mark("]")) {
      if (const std::optional<double> r = try_real()) reals.push_back(*r);
      else integers.push_back(integer());
      if (!is_mark("]")) expect(",");
    }
    expect("]");
    if (!reals.empty() && !integers.empty()) fail("a list of numbers with and without a point");
    if (!reals.empty()) return reals;
    return integers;
  }

  // ---- classes ----
  void one_class() {
    m_.classes.emplace_back();
    Class& c = m_.classes.back();
    c.name = word();
    if (!class_ids_.emplace(c.name, ClassId{static_cast<std::uint32_t>(m_.classes.size() - 1)}).second)
      fail("the class " + c.name + " is there already");
    expect(":");
    c.definition = word();
    if (token().kind == Kind::string) c.arguments = string();
    c.leaf = take_word("leaf");
    c.where = place();
    expect("{");
    std::vector<std::pair<std::string, int>> inits;                           // function of each const, and the line
    while (ok() && !take("}")) {
      if (take_word("weight")) weight(c);
      else if (take_word("const")) constant(c, inits);
      else if (take_word("state")) state(c);
      else if (take_word("child")) child(c, false);
      else if (take_word("children")) child(c, true);
      else if (take_word("forward")) function(c, FunctionKind::forward);
      else if (take_word("entry")) function(c, FunctionKind::entry);
      else if (take_word("init")) function(c, FunctionKind::init);
      else fail("a member or a function is wanted, not " + shown());
    }
    for (std::size_t i = 0; i < inits.size() && ok(); ++i) {
      std::uint32_t f = 0;
      while (f < c.functions.size() && c.functions[f].name != inits[i].first) ++f;
      if (f == c.functions.size()) fail("there is no function " + inits[i].first, inits[i].second);
      else c.consts[i].init = FunctionId{f};
    }
  }

  void weight(Class& c) {
    WeightDecl w;
    w.path = w.name = word();
    if (take_word("at")) w.path = string();
    expect(":");
    w.type = type();
    if (take_word("matrix")) w.role = WeightRole::matrix;
    else if (take_word("table")) w.role = WeightRole::table;
    else expect_word("vector");
    if (take_word("shape")) w.shape_text = string();
    if (take_word("numbers")) w.shape_numbers = string();
    if (take_word("from")) do
        w.origins.push_back(string());
      while (take(","));
    if (take_word("dtype")) {
      w.required_dtype = dtype_from_name(word());
      if (!w.required_dtype) fail("not a dtype");
    }
    if (take_word("default")) w.default_value = real();
    w.where = place();
    c.order.emplace_back('w', static_cast<std::uint32_t>(c.weights.size()));
    c.weights.push_back(std::move(w));
  }

  void constant(Class& c, std::vector<std::pair<std::string, int>>& inits) {
    ConstDecl d;
    d.name = word();
    expect(":");
    d.type = type();
    expect("=");
    inits.emplace_back(word(), token().line);
    d.where = place();
    c.order.emplace_back('c', static_cast<std::uint32_t>(c.consts.size()));
    c.consts.push_back(std::move(d));
  }

  void state(Class& c) {
    StateDecl d;
    d.name = word();
    expect(":");
    const std::string kind = word();
    constexpr std::string_view kinds[] = {"kv_cache", "latent_cache", "cross_cache", "ring", "recurrent"};
    int k = 0;
    while (k < 5 && kinds[k] != kind) ++k;
    if (k == 5) fail("`" + kind + "` is no kind of state");
    d.kind = static_cast<StateKind>(k % 5);
    expect("[");
    while (ok() && !is_mark("]")) {
      d.sizes.push_back(integer());
      if (!is_mark("]")) expect(",");
    }
    expect("]");
    if (take_word("window")) d.window = integer();
    d.where = place();
    c.order.emplace_back('s', static_cast<std::uint32_t>(c.states.size()));
    c.states.push_back(std::move(d));
  }

  void child(Class& c, bool list) {
    ChildDecl d;
    d.list = list;
    d.path = d.name = word();
    if (take_word("at")) d.path = string();
    expect(":");
    Pending p{m_.classes.size() - 1, c.children.size(), {}};
    std::int64_t total = 0;
    if (list) expect("[");
    while (ok() && !(list && is_mark("]"))) {
      const int line = token().line;
      std::string name = word();
      const std::int64_t n = list && take("*") ? integer() : 1;
      if (n < 1 || n > max_elements || (total += n) > max_elements || (all_elements_ += n) > max_all_elements)
        fail("too many elements, or none");
      p.elements.push_back({std::move(name), n, line});
      if (!list) break;
      if (!is_mark("]")) expect(",");
    }
    if (list) expect("]");
    d.where = place();
    c.order.emplace_back('m', static_cast<std::uint32_t>(c.children.size()));
    c.children.push_back(std::move(d));
    pending_.push_back(std::move(p));
  }

  // Names of classes become ids once all classes are known.
  void link(const std::string& root, int root_line) {
    for (const Pending& p : pending_) {
      if (!ok()) return;
      for (const auto& [name, count, line] : p.elements) {
        const auto it = class_ids_.find(name);
        if (it == class_ids_.end()) return fail("there is no class " + name, line);
        auto& elements = m_.classes[p.owner].children[p.child].elements;
        elements.insert(elements.end(), static_cast<std::size_t>(count), it->second);
      }
    }
    const auto it = class_ids_.find(root);
    if (it == class_ids_.end()) return fail("there is no class " + root, root_line);
    m_.root = it->second;
  }

  // ---- functions ----
  ValueId define(Function& f) {
    if (token().kind != Kind::value) {
      fail("a value is missing before " + shown());
      return {};
    }
    const ValueId id{static_cast<std::uint32_t>(f.values.size())};
    if (!values_.emplace(token().key, id).second) fail("the value " + token().key + " is there already");
    Value v;
    v.name = take_text();
    expect(":");
    v.type = type();
    if (take_word("stage")) v.stage = string();
    f.values.push_back(std::move(v));
    return id;
  }
  ValueId use() {
    if (token().kind != Kind::value) {
      fail("a value is missing before " + shown());
      return {};
    }
    const auto it = values_.find(token().key);
    if (it == values_.end()) {
      fail("the value " + token().key + " is not known here");
      return {};
    }
    advance();
    return it->second;
  }

  void function(Class& c, FunctionKind kind) {
    Function f;
    f.kind = kind;
    values_.clear();
    f.name = word();
    expect("(");
    while (ok() && !is_mark(")")) {
      Parameter p;
      p.value = define(f);
      if (!ok()) return;
      p.name = f.values[p.value.index].name;
      if (take_word("name")) p.name = string();
      if (take_word("default")) p.default_value = real();
      f.inputs.push_back(std::move(p));
      if (!is_mark(")")) expect(",");
    }
    expect(")");
    if (take_word("signature")) f.signature = string();
    f.where = place();
    expect("{");
    while (ok() && !is_word("return")) f.body.ops.push_back(op(f, 0));
    expect_word("return");
    while (ok() && !is_mark("}")) {
      f.body.results.push_back(use());
      f.result_names.push_back(take_word("as") ? string() : "");
      if (!is_mark("}")) expect(",");
    }
    expect("}");
    c.functions.push_back(std::move(f));
  }

  Op op(Function& f, int depth) {
    Op o;
    if (depth > max_depth) fail("repeats are nested too deep");
    while (ok() && token().kind == Kind::value) {
      o.results.push_back(define(f));
      if (!is_mark("=")) expect(",");
    }
    if (!o.results.empty()) expect("=");
    const int line = token().line;
    const std::string name = word();
    const std::optional<OpKind> kind = kind_of(name);
    if (!kind) fail("there is no operation " + name, line);
    o.kind = kind.value_or(OpKind::weight);
    if (token().kind == Kind::string) {
      o.member = string();
      if (take(".")) o.callee = word();
    }
    if (take("(")) arguments(o);
    if (o.kind == OpKind::custom) o.custom = custom();
    if (take_word("source")) o.source = string();
    o.where = place();
    if (take_word("in")) o.call = place();
    if (take("{")) {
      Block b;
      if (take_word("carry")) do
          b.arguments.push_back(define(f));
        while (take(","));
      while (ok() && !is_word("next")) b.ops.push_back(op(f, depth + 1));
      expect_word("next");
      while (ok() && !is_mark("}")) {
        b.results.push_back(use());
        if (!is_mark("}")) expect(",");
      }
      expect("}");
      o.body = std::move(b);
    }
    return o;
  }

  std::vector<DimId> dim_list() {
    std::vector<DimId> dims;
    expect("[");
    while (ok() && !is_mark("]")) {
      dims.push_back(dim());
      if (dims.size() > max_dims) fail("more sizes than an operation has");
      if (!is_mark("]")) expect(",");
    }
    expect("]");
    return dims;
  }
  Custom custom() {
    Custom c;
    expect_word("of");
    c.name = word();
    expect_word("sizes");
    c.sizes = dim_list();
    while (ok() && take_word("shader")) {
      Dispatch d;
      d.shader = small_integer();
      expect_word("local");
      d.local_size = integer();
      expect_word("groups");
      d.groups = dim_list();
      c.dispatches.push_back(std::move(d));
    }
    if (take_word("host")) c.host = small_integer();
    return c;
  }

  void arguments(Op& o) {
    // Operands are values and `_`; names stand after `;`, or at once where there is no operand.
    while (ok() && (token().kind == Kind::value || is_word("_"))) {
      if (take_word("_")) o.operands.push_back(std::nullopt);
      else o.operands.push_back(use());
      if (is_mark(")") || is_mark(";")) break;
      expect(",");
    }
    if (take(";") || (o.operands.empty() && !is_mark(")"))) {
      while (ok() && !is_mark(")")) {
        const std::string name = word();
        expect(":");
        if (!o.attrs.emplace(name, attr_value()).second) fail("the argument " + name + " is there already");
        if (!is_mark(")")) expect(",");
      }
    }
    expect(")");
  }

  struct Element {
    std::string name;
    std::int64_t count;
    int line;
  };
  struct Pending {
    std::size_t owner, child;
    std::vector<Element> elements;
  };

  Module m_;
  std::unordered_map<std::string, ClassId> class_ids_;
  std::unordered_map<std::string, ValueId> values_;                           // of the function being read
  std::vector<Pending> pending_;
  std::int64_t all_elements_ = 0;
};

}  // namespace

Result<Module> read(std::string_view text) { return Reader(text).module(); }

}  // namespace modelc::graph
