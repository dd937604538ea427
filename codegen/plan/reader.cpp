#include "codegen/plan/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "codegen/plan/fields.h"
#include "codegen/plan/walk.h"
#include "codegen/plan/words.h"
#include "frontend/graph/lexer.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/reader.h"
#include "runtime/abi/dtype.h"

namespace modelc::plan {

namespace {

constexpr int max_depth = 32;                    // of loops in loops

// The name of a step kind makes one: its alternatives in turn.
template <std::size_t I = 0> bool make_step(const std::string& name, StepKind& into) {
  if constexpr (I == std::variant_size_v<StepKind>) {
    return false;
  } else {
    StepKind fresh{std::in_place_index<I>};
    if (name != kind_name(fresh)) return make_step<I + 1>(name, into);
    into = std::move(fresh);
    return true;
  }
}

class Reader : graph::Cursor {
 public:
  Reader(std::string_view text, Program& into) : Cursor(text), p_(into) {}

  std::optional<Error> run() {
    expect_word("plan");
    if (integer() != 1) fail("this reader knows form 1 of the text");
    while (ok() && token().kind != graph::Token::Kind::end) {
      if (take_word("arena")) expect(":"), value(p_.peak_bytes);
      else if (take_word("once")) expect(":"), value(p_.step_value_bytes);
      else if (take_word("kernel")) kernel();
      else if (take_word("class")) cls();
      else fail("`arena`, `once`, `kernel` or `class` is missing before " + shown());
    }
    if (ok()) return std::nullopt;
    Error e = error();
    e.kind = "plan-text";
    return e;
  }

 private:
  // ---- values ----
  void value(std::string& s) { s = string(); }
  void value(bool& b) {
    b = take_word("true");
    if (!b) expect_word("false");
  }
  void value(double& d) {
    if (token().kind == graph::Token::Kind::integer) d = static_cast<double>(integer());
    else d = real();
  }
  void value(std::int64_t& i) { i = integer(); }
  void value(int& i) {
    const std::int64_t n = integer();
    if (n < std::numeric_limits<int>::min() || n > std::numeric_limits<int>::max()) fail("a number that is too large");
    else i = static_cast<int>(n);
  }
  void value(DType& t) { t = dtype(); }
  void value(graph::OpKind& op) {
    const std::string name = word();
    const graph::OpInfo* info = graph::find_op(name);
    if (info == nullptr) return fail("there is no operation " + name);
    op = info->kind;
  }
  template <Worded E> void value(E& e) {
    const std::string name = word();
    const auto& list = Words<E>::list;
    const auto it = std::find(list.begin(), list.end(), name);
    if (it == list.end()) return fail("there is no kind " + name);
    e = static_cast<E>(it - list.begin());
  }
  graph::DimId dim() {
    const int line = token().line;
    const std::string_view text = raw();
    const auto d = p_.dims->parse(text);
    if (!d) fail(fmt::format("{} is no size", text.substr(0, 60)), line);
    return d.value_or(graph::DimId{});
  }
  void value(graph::DimId& d) {
    expect("[");
    d = dim();
    expect("]");
  }
  void value(std::vector<graph::DimId>& s) {
    expect("[");
    s.clear();
    if (take("]")) return;
    do s.push_back(dim());
    while (ok() && take(","));
    expect("]");
  }
  DType dtype() {
    const std::string name = word();
    const auto t = dtype_from_name(name);
    if (!t) fail("there is no type " + name);
    return t.value_or(DType::f32);
  }
  void value(graph::Type& t) {
    t.dtype = dtype();
    if (take("(")) {
      t.index_bound = dim();
      expect(")");
    }
    value(t.shape);
  }
  void value(graph::Where& w) {
    if (take_word("none")) return;
    w.file = string();
    expect(":");
    value(w.line);
    expect(":");
    value(w.column);
  }
  void value(std::optional<double>& d) {
    if (take_word("none")) return;
    value(d.emplace());
  }
  void value(BufferId& b) {
    if (f_ == nullptr || token().kind != graph::Token::Kind::value) return fail("a buffer is missing before " + shown());
    const std::string name = take_text();
    const auto it = std::find_if(f_->buffers.begin(), f_->buffers.end(), [&](const Buffer& x) { return x.name == name; });
    if (it == f_->buffers.end()) return fail("there is no buffer " + name);
    b.index = static_cast<std::uint32_t>(it - f_->buffers.begin());
  }
  // By name in a list of things that have one.
  template <class T> std::uint32_t named(const std::vector<T>& list, const char* what) {
    const std::string name = word();
    const auto it = std::find_if(list.begin(), list.end(), [&](const T& x) { return x.name == name; });
    if (it == list.end()) fail(fmt::format("there is no {} {}", what, name));
    return it == list.end() ? 0 : static_cast<std::uint32_t>(it - list.begin());
  }
  void value(KernelId& k) { k.index = named(p_.kernels, "kernel"); }
  void value(MapNode& n) {
    const std::string name = word();
    if (name == "input") {
      n.kind = MapNode::Kind::input;
      n.input = count();
    } else if (name == "literal") {
      n.kind = MapNode::Kind::literal;
      value(n.literal);
    } else {
      n.kind = MapNode::Kind::op;
      const graph::OpInfo* info = graph::find_op(name);
      if (info == nullptr) return fail("there is no operation " + name);
      n.op = info->kind;
      expect("(");
      if (!take(")")) {
        do n.operands.push_back(count());
        while (ok() && take(","));
        expect(")");
      }
      if (take_word("as")) n.dtype = dtype();
    }
  }
  std::uint32_t count() {
    const std::int64_t i = integer();
    if (i < 0 || i > std::numeric_limits<std::int32_t>::max()) fail("a number that is out of place");
    return static_cast<std::uint32_t>(std::max<std::int64_t>(i, 0));
  }
  void rows(std::optional<Rows>& r) {
    if (!take_word("cut")) return;
    r.emplace();
    expect("(");
    value(r->of);
    expect(",");
    r->start = dim();
    expect(",");
    r->stop = dim();
    expect(")");
  }
  void view(std::optional<std::vector<graph::DimId>>& v) {
    if (take_word("as")) value(v.emplace());
  }
  void value(Operand& o) {
    if (token().kind == graph::Token::Kind::value) {
      BufferRef b;
      value(b.buffer);
      if (!ok()) return;
      b.shape = f_->buffers[b.buffer.index].type.shape;
      rows(b.rows);
      if (take_word("as")) value(b.shape);
      o = std::move(b);
    } else if (take_word("weight")) {
      WeightRef w{string()};
      rows(w.rows), view(w.view);
      o = std::move(w);
    } else if (take_word("const")) {
      ConstRef c{string()};
      rows(c.rows), view(c.view);
      o = std::move(c);
    } else if (take_word("once")) {
      StepValueRef s;
      s.index = count();
      value(s.shape);
      o = std::move(s);
    } else if (take_word("at")) {
      if (!take(".")) {
        o = BatchRef{};
        return;
      }
      BatchField f{word()};
      view(f.view);
      o = std::move(f);
    } else {
      expect_word("none");
      o = Absent{};
    }
  }
  template <class T>
    requires As<T, Layout> || As<T, Part> || As<T, Carried> || As<T, graph::Dispatch> || As<T, Rounding> || As<T, Trace>
  void value(T& t) {
    object(t);
  }
  template <class T> void value(std::vector<T>& list) {
    expect("[");
    list.clear();
    if (take("]")) return;
    do value(list.emplace_back());
    while (ok() && take(","));
    expect("]");
  }

  // ---- blocks of named things ----
  void value(std::vector<Buffer>& list) {
    each(list, [&] {
      if (token().kind != graph::Token::Kind::value) return fail("a buffer is missing before " + shown());
      fresh(list, take_text());
    });
  }
  void value(std::vector<Pack>& list) {
    each(list, [&] { fresh(list, word()); });
  }
  void value(std::vector<StepValue>& list) {
    each(list, [&] { fresh(list, word()); });
  }
  void value(std::vector<Function>& list) {
    each(list, [&] { list.emplace_back().name = word(); });
  }
  void value(Function& f) {
    f.name = word();
    object(f);
  }
  void value(std::vector<Step>& list) {
    expect("{");
    if (++depth_ > max_depth) fail("loops that are nested too deep");
    while (ok() && !take("}")) {
      Step& s = list.emplace_back();
      const std::string name = word();
      if (!make_step(name, s.kind)) return fail("there is no step " + name);
      Fields read{*this};
      std::visit([&](auto& kind) { fields(read, kind); }, s.kind);
      fields(read, s);
      read.run();
    }
    --depth_;
  }
  template <class T> void fresh(std::vector<T>& list, const std::string& name) {
    if (std::any_of(list.begin(), list.end(), [&](const T& x) { return x.name == name; })) fail("there are two of the name " + name);
    list.emplace_back().name = name;
  }
  template <class T, class Head> void each(std::vector<T>& list, const Head& head) {
    expect("{");
    while (ok() && !take("}")) {
      head();
      if (ok()) object(list.back());
    }
  }

  // ---- fields, in any order ----
  struct Fields {
    Reader& from;
    std::vector<std::pair<std::string_view, std::function<void()>>> known = {};

    void pack(const char* name, std::uint32_t& index) {
      known.emplace_back(name, [this, &index] { index = from.named(from.class_->packs, "product"); });
    }
    template <class T> void operator()(const char* name, T& value) {
      known.emplace_back(name, [this, &value] { from.value(value); });
    }
    void run() {
      from.expect("{");
      std::vector<bool> seen(known.size());
      while (from.ok() && !from.take("}")) {
        const std::string name = from.word();
        std::size_t at = 0;
        while (at < known.size() && known[at].first != name) ++at;
        if (from.ok() && at == known.size()) from.fail("there is no field " + name + " here");
        else if (from.ok() && seen[at]) from.fail("the field " + name + " stands here twice");
        from.expect(":");
        if (!from.ok()) return;
        seen[at] = true;
        known[at].second();
      }
    }
  };
  template <class T> void object(T& value) {
    Function* outer = f_;
    if constexpr (std::is_same_v<T, Function>) f_ = &value;
    Fields read{*this};
    fields(read, value);
    read.run();
    f_ = outer;
  }

  // ---- the file ----
  void kernel() {
    fresh(p_.kernels, word());
    MapKernel& k = p_.kernels.back();
    object(k);
    // Operands stand before what they are of, and inputs are named.
    for (std::size_t i = 0; ok() && i < k.nodes.size(); ++i) {
      const MapNode& n = k.nodes[i];
      bool good = n.kind != MapNode::Kind::input || n.input < k.inputs.size();
      for (const std::uint32_t o : n.operands) good = good && o < i;
      if (!good) fail(fmt::format("the kernel {}: node {} has an operand that is not there", k.name, i));
    }
    if (ok() && k.nodes.empty()) fail(fmt::format("the kernel {} computes nothing", k.name));
  }
  void cls() {
    const std::string name = word();
    for (std::size_t i = 0; i < p_.classes.size(); ++i) {
      if (p_.classes[i].source->name != name) continue;
      if (!p_.classes[i].functions.empty()) return fail("there are two of the class " + name);
      class_ = &p_.classes[i];
      return object(p_.classes[i]);
    }
    fail("the graph has no class " + name);
  }

  Program& p_;
  Class* class_ = nullptr;
  Function* f_ = nullptr;
  int depth_ = 0;
};

}  // namespace

Result<Program> read(std::string_view text) {
  const std::string_view between = "\ngraph\n";
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos)
    return Error{"plan-text", "the graph is missing: a line `graph`, and behind it what `modelc dump --stage graph` prints", {}, ""};
  auto module = graph::read(text.substr(at + between.size()));
  if (!module) return module.error();
  Program p;
  auto graph = std::make_shared<graph::Module>(std::move(*module));
  p.dims = std::make_shared<graph::DimTable>(graph->dims);
  for (const graph::Class& c : graph->classes) p.classes.emplace_back().source = &c;
  p.graph = std::move(graph);
  if (auto wrong = Reader(text.substr(0, at + 1), p).run()) return std::move(*wrong);
  return p;
}

}  // namespace modelc::plan
