// What an expression of the language evaluates to. One kind of value serves configurations, module arguments and
// forward bodies: a value is static (a number, a text, a list, a bound configuration, a recipe of a module, a
// function), a size of a run-time axis, or a handle of something in the graph that is being built (a tensor, a member
// of an instance, a batch), which only TensorContext (tensor_context.h) can look into.
//
// Values are cheap to copy and immutable, but for the marks of which configuration fields have been read. They live no
// longer than the Evaluator that made them: bound configurations belong to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/graph/graph.h"
#include "frontend/sema/formula.h"
#include "frontend/sema/scope.h"
#include "frontend/sema/symbols.h"
#include "frontend/syntax/ast.h"

namespace modelc::sema {

enum class ValueKind : std::uint8_t {
  error,       // something failed and has been reported: whatever uses it is silent and fails too
  none,
  boolean,
  integer,     // int64; a `dim` is an integer that was checked to be at least 1
  real,        // f64
  string,
  list,
  tuple,       // several results: `return a, b`, `(a, b)`
  map,         // map[T]: an object of config.json
  config,      // a bound configuration
  variant,     // a bound case of a variant
  recipe,      // a module and its arguments: Linear(4, 8); or the module alone: Linear
  interface,   // an interface, as a name alone
  encoding,    // an encoding and its arguments: fp8_block(128, 128); `plain` has no definition
  closure,     // fn(x) = …, a declared fn, a config's fn
  builtin,     // a function of the language: silu, len
  op,          // a declared custom operation, as a name alone
  files,       // an import with an alias: `base` of `import llama as base`
  dim,         // a size that has a run-time axis in it: tokens, 2 * frames + 1 (one without is an integer)
  tensor,      // a value in the graph
  batch,       // `at: Batch` or `at: Sequences`
  member,      // a child, a list of children, a state: what TensorContext knows
  absent,      // a member whose condition is false
};

class Value;
struct ConfigInstance;
struct VariantInstance;
struct Recipe;
struct Closure;
struct VariantDef;   // config.h
struct ConfigDef;    // config.h

// A tensor or a batch in the function that is being built.
struct GraphValue {
  graph::ValueId id;
  graph::Type type;
};

// A member of the instance whose function is being built: the base of what TensorContext's maker wants to know of it.
class Member {
 public:
  virtual ~Member() = default;
  virtual std::string describe() const = 0;          // for messages: "the child `q_proj`", "the state `cache`"
};

// A member that this instance does not have.
struct AbsentMember {
  std::string name;                                  // "sinks"
  source::Span where;                                // its declaration
  std::string reason;                                // "its condition `has_sinks` is false"; may be empty
};

class Value {
 public:
  Value() = default;                                 // an error
  static Value error() { return {}; }
  // The variant of `RopeScaling?`, when known, lets `match` check its arms against it.
  static Value none(const VariantDef* of = nullptr, FormulaPtr formula = nullptr);
  static Value boolean(bool v, FormulaPtr formula = nullptr);
  static Value integer(std::int64_t v, FormulaPtr formula = nullptr);
  static Value real(double v, FormulaPtr formula = nullptr);
  static Value string(std::string v, FormulaPtr formula = nullptr);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value map(std::vector<std::pair<std::string, Value>> entries);
  static Value config(const ConfigInstance* instance);          // owned by the Evaluator
  static Value variant(const VariantInstance* instance);        // owned by the Evaluator
  static Value recipe(Recipe recipe);
  static Value interface(const Symbol* symbol);
  static Value encoding(Recipe recipe);
  static Value closure(Closure closure);
  static Value builtin(const Builtin* function);
  static Value op(const Symbol* symbol);
  static Value files(const FileSymbols* file);
  // A constant dim becomes an integer.
  static Value dim(const graph::DimTable& dims, graph::DimId id, FormulaPtr formula = nullptr);
  static Value tensor(GraphValue value);
  static Value batch(GraphValue value);
  static Value member(std::shared_ptr<const Member> member);
  static Value absent(AbsentMember member);

  ValueKind kind() const { return kind_; }
  bool is(ValueKind k) const { return kind_ == k; }
  bool is_error() const { return kind_ == ValueKind::error; }
  bool is_none() const { return kind_ == ValueKind::none; }
  bool is_number() const { return kind_ == ValueKind::integer || kind_ == ValueKind::real; }
  // What only a TensorContext can compute with: a tensor, a batch, a member.
  bool is_graph() const { return kind_ == ValueKind::tensor || kind_ == ValueKind::batch || kind_ == ValueKind::member; }

  // Each asserts its kind.
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_real() const;                            // of an integer too
  const std::string& as_string() const;
  const std::vector<Value>& items() const;           // list, tuple
  const std::vector<std::pair<std::string, Value>>& entries() const;
  const ConfigInstance& as_config() const;
  const VariantInstance& as_variant() const;
  const Recipe& as_recipe() const;                   // recipe, encoding
  const Closure& as_closure() const;
  const Builtin& as_builtin() const;
  const Symbol& as_symbol() const;                   // interface, op
  const FileSymbols& as_files() const;
  graph::DimId as_dim() const;
  const GraphValue& as_graph() const;                // tensor, batch
  const std::shared_ptr<const Member>& as_member() const;
  const AbsentMember& as_absent() const;

  const VariantDef* none_of() const;                 // of none; may be null
  // The tensors, members … inside lists and tuples count: true when nothing in it needs a graph.
  bool is_static() const;

  const FormulaPtr& formula() const { return formula_; }
  Value with_formula(FormulaPtr formula) const;

 private:
  struct Payload;
  template <class T> struct Holder;
  template <class T> const T& held() const;
  template <class T> static Value make(ValueKind kind, T payload);

  ValueKind kind_ = ValueKind::error;
  union {
    bool boolean_;
    std::int64_t integer_ = 0;
    double real_;
    std::uint32_t dim_;
    const void* pointer_;
  };
  std::shared_ptr<const Payload> payload_;
  FormulaPtr formula_;
};

// A module (or an encoding) and the values of all its parameters, defaults included, in the order of the declaration,
// each of its declared type.
struct Recipe {
  const Symbol* symbol = nullptr;                    // null: the encoding `plain`
  bool called = false;                               // false: the name alone
  std::vector<std::pair<std::string, Value>> arguments;
  source::Span span;                                 // of the call
  const ast::ModuleDecl& module() const;
};

// A function of the language. The captured environment is a snapshot, so a `let` cannot make a cycle.
struct Closure {
  std::string name;                                  // "" for `fn(x) = …`
  const std::vector<ast::Name>* params = nullptr;
  const ast::Expr* value = nullptr;                  // either this
  const ast::Block* block = nullptr;                 // or this
  Environment environment;
  source::Span span;                                 // of the declaration
};

// A value of a bound configuration or case, under its name.
struct ConfigField {
  std::string name;
  Value value;
  source::Span span;                                 // of the name in its declaration
  const ast::FieldItem* decl = nullptr;              // null: a `let`
  bool reads_itself = false;                         // of a literal type: any other value would have been refused
  std::string origin;                                // "from config.json:12", "by default", "(absent …)"
};

struct ConfigInstance {
  const ConfigDef* definition = nullptr;
  std::vector<ConfigField> fields;                   // in the order of the declarations, base first; then the `let`s
  mutable std::vector<bool> read;                    // by field: by a module, or mentioned by the config itself
  mutable std::string canonical;                     // cache of canonical()

  const ConfigField* find(std::string_view name) const;         // marks nothing
  void mark_read(std::string_view name) const;
};

struct VariantInstance {
  const VariantDef* definition = nullptr;
  std::size_t case_index = 0;                        // in the declaration
  std::string tag;                                   // as found: "su"
  bool optional = false;                             // its declared type was `V?`: a match on it has to cover none
  const ConfigInstance* fields = nullptr;            // owned by the Evaluator
};

// ---- on static values -----------------------------------------------------------------------------------------------

// Structural equality; an integer equals a real of the same value. Formulas do not count. Handles equal when they are
// the same handle.
bool equal(const Value& a, const Value& b);

// A text that is the same exactly for equal values: what to key classes by. Numbers are exact; a configuration is its
// definition and fields, a recipe its definition and arguments, a closure its text's place and the values of the names
// that it uses. A handle gives a text that is unique in this process, so a key must not be printed or ordered by.
std::string canonical(const Value& value);

// "40", "\"silu\"", "[1, 2, … 28 more]", "RopeScaling \"llama3\"", "Linear(in_dim: 4, out_dim: 8)": for messages and
// comments.
std::string show(const Value& value, std::size_t max_bytes = 120);
// "an int", "none", "a list", "the module Linear": for messages of the form "found …".
std::string kind_name(const Value& value);
// "heads * d = 4 * 16 = 64" with a formula, else what show() says.
std::string show_formula(const Value& value);

}  // namespace modelc::sema
