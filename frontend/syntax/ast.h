// The syntax tree. One struct a construct, named as in grammar/Model.g4, its source form in the comment before it. The
// smaller parts stand in ast_expr.h (names, expressions, types), ast_checkpoint.h (tensor patterns, rules) and
// ast_tests.h.
//
// The families Expr, Type, Statement, Rule, Item (declarations, configuration items, members, sections) and TestItem
// are polymorphic: each node has a `kind` and no virtual function but the destructor. To walk one, switch on `kind` and
// cast:
//
//   switch (expr.kind) {
//     case ast::ExprKind::binary: return visit(ast::as<ast::BinaryExpr>(expr));
//     ...
//   if (const auto* call = ast::try_as<ast::CallExpr>(expr)) ...
//
// A pointer is never null unless its comment says "may be null". Every node has a span; a made node's is invalid. The
// depth of a tree that the parser returns is bounded (parser.h), so walking it by recursion is safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/source/source.h"
#include "frontend/syntax/ast_checkpoint.h"
#include "frontend/syntax/ast_expr.h"
#include "frontend/syntax/ast_tests.h"

namespace modelc::ast {

// --- Statements -----------------------------------------------------------------------------------------------------

enum class StatementKind { let, for_, return_, assign, call };

struct Statement {
  const StatementKind kind;
  Span span;

  virtual ~Statement() = default;

 protected:
  explicit Statement(StatementKind k) : kind(k) {}
};
using StatementPtr = std::unique_ptr<Statement>;

// { statements }
struct Block {
  std::vector<StatementPtr> statements;
  Span span;  // with the braces
};

// let y = value, let (a, b) = value
struct LetStatement : Statement {
  static constexpr StatementKind node_kind = StatementKind::let;
  LetStatement() : Statement(node_kind) {}
  std::vector<Name> names;  // one without parentheses, else at least two
  ExprPtr value;
};

// for layer in layers { … }
struct ForStatement : Statement {
  static constexpr StatementKind node_kind = StatementKind::for_;
  ForStatement() : Statement(node_kind) {}
  Name variable;
  ExprPtr source;
  Block body;
};

// return a, b
struct ReturnStatement : Statement {
  static constexpr StatementKind node_kind = StatementKind::return_;
  ReturnStatement() : Statement(node_kind) {}
  std::vector<ExprPtr> values;
};

// h = value
struct AssignStatement : Statement {
  static constexpr StatementKind node_kind = StatementKind::assign;
  AssignStatement() : Statement(node_kind) {}
  Name name;
  ExprPtr value;
};

// cache.append(k, v, at)
struct CallStatement : Statement {
  static constexpr StatementKind node_kind = StatementKind::call;
  CallStatement() : Statement(node_kind) {}
  Path path;
  Args args;
};

// --- Parameters and signatures --------------------------------------------------------------------------------------

// size: dim = 4
struct Param {
  Name name;
  TypePtr type;
  ExprPtr default_value;  // may be null
  Span span;
};

// logits: f32[outputs, n]
struct ResultItem {
  std::optional<Name> name;
  TypePtr type;
  Span span;
};

// forward(x: [tokens, n]) -> [tokens, n], entry remember(…) -> (a, b)
struct Signature {
  bool is_forward = false;
  Name name;  // "forward", or the entry's
  std::vector<Param> params;
  std::optional<std::vector<ResultItem>> result;  // absent: it follows from the body
  Span span;
};

// --- Items ----------------------------------------------------------------------------------------------------------

enum class ItemKind {
  // declarations of a file
  axis,
  config,
  variant,
  interface,
  module,
  function,
  op,
  encoding,
  test,
  // items of a config; `function` too
  field,
  let,
  require,
  refuse,
  ignore,
  remove,
  // members of a module; `let`, `function`, `require`, `remove` too
  context,
  param,
  constant,
  state,
  child,
  method,
  checkpoint,
  // sections of a module
  policy,
  shard,
  quantize,
  place,
};

struct Item {
  const ItemKind kind;
  Span span;
  std::string doc;  // the `///` lines before it, without the slashes and one blank, joined by '\n'

  virtual ~Item() = default;

 protected:
  explicit Item(ItemKind k) : kind(k) {}
};
using ItemPtr = std::unique_ptr<Item>;

// axis frames: 2..3000 by 2
struct AxisDecl : Item {
  static constexpr ItemKind node_kind = ItemKind::axis;
  AxisDecl() : Item(node_kind) {}
  Name name;
  Range range;
  ExprPtr step;  // may be null
};

// config LlamaConfig file "x.json" extends TransformersConfig { … }
struct ConfigDecl : Item {
  static constexpr ItemKind node_kind = ItemKind::config;
  ConfigDecl() : Item(node_kind) {}
  Name name;
  std::optional<String> file;
  std::optional<Name> base;
  std::vector<ItemPtr> items;  // field, let, function, require, remove, refuse, ignore
};

// "longrope" | "su" { … }
struct VariantCase {
  std::vector<String> tags;
  std::vector<ItemPtr> items;  // as a config's
  std::string doc;
  Span span;
};

// variant RopeScaling by rope_type | type { … }
struct VariantDecl : Item {
  static constexpr ItemKind node_kind = ItemKind::variant;
  VariantDecl() : Item(node_kind) {}
  Name name;
  std::vector<Path> tag_keys;
  std::vector<VariantCase> cases;
};

// interface FeedForward(size: dim) { forward(…) -> … }
struct InterfaceDecl : Item {
  static constexpr ItemKind node_kind = ItemKind::interface;
  InterfaceDecl() : Item(node_kind) {}
  Name name;
  std::vector<Param> params;
  std::vector<Signature> signatures;  // at least one
};

// module A(c: C) extends B(c) { … }, model …
struct ModuleDecl : Item {
  static constexpr ItemKind node_kind = ItemKind::module;
  ModuleDecl() : Item(node_kind) {}
  bool is_model = false;
  Name name;
  std::vector<Param> params;
  bool has_params = false;      // `module A { }` has none, `module A() { }` has ()
  std::optional<Name> base;
  std::optional<Args> base_args;
  std::vector<ItemPtr> members;  // let, function, require, context, param, constant, state, child, method, checkpoint,
                                 // remove, policy, shard, quantize, place
};

// fn f(a, b) = expr, fn f(a) { let …  return … }
struct FunctionDecl : Item {
  static constexpr ItemKind node_kind = ItemKind::function;
  FunctionDecl() : Item(node_kind) {}
  Name name;
  std::vector<Name> params;
  ExprPtr value;               // either this
  std::optional<Block> block;  // or this
};

// cpu "f.h", glsl "f.comp" local_size 256 dispatch [n] requires float16 when …
struct Kernel {
  Name backend;  // "cpu" or "glsl"
  String file;
  ExprPtr local_size;  // may be null
  ExprPtr dispatch;    // may be null
  std::vector<Name> required;
  ExprPtr when;  // may be null
  Span span;
};

// op gelu(x: [..., n]) -> [..., n] { reference … kernels }
struct OpDecl : Item {
  static constexpr ItemKind node_kind = ItemKind::op;
  OpDecl() : Item(node_kind) {}
  Name name;
  std::vector<Param> params;
  std::vector<ResultItem> result;
  ExprPtr reference;                     // either this
  std::optional<Block> reference_block;  // or this
  std::vector<Kernel> kernels;
};

// part codes at "{name}": f8_e4m3[..., n, k]
struct EncodingPart {
  Name name;
  String at;
  TypePtr type;
  std::string doc;
  Span span;
};

// encoding fp8_block(rows: dim, columns: dim) of [..., n, k] { parts  value expr }
struct EncodingDecl : Item {
  static constexpr ItemKind node_kind = ItemKind::encoding;
  EncodingDecl() : Item(node_kind) {}
  Name name;
  std::vector<Param> params;
  bool has_params = false;
  Shape shape;
  std::vector<EncodingPart> parts;  // at least one
  ExprPtr value;
};

// --- Items of a config ----------------------------------------------------------------------------------------------

// override a, b: T in lo..hi from key | other.key = default
struct FieldItem : Item {
  static constexpr ItemKind node_kind = ItemKind::field;
  FieldItem() : Item(node_kind) {}
  std::optional<Span> override_;  // of the word
  std::vector<Name> names;
  TypePtr type;
  std::optional<Range> range;
  std::vector<Path> from;
  ExprPtr default_value;  // may be null
};

// let heads = c.num_attention_heads; in modules too
struct LetItem : Item {
  static constexpr ItemKind node_kind = ItemKind::let;
  LetItem() : Item(node_kind) {}
  Name name;
  ExprPtr value;
};

// require a % b == 0, "message"; in modules too
struct RequireItem : Item {
  static constexpr ItemKind node_kind = ItemKind::require;
  RequireItem() : Item(node_kind) {}
  ExprPtr condition;
  std::optional<String> message;
};

// a key path, or a string with `*`
struct KeyPattern {
  bool quoted = false;
  String string;  // if quoted
  Path path;      // if not
  Span span;

  std::string text() const;
};

// refuse sliding_window, "pooler_*"
struct RefuseItem : Item {
  static constexpr ItemKind node_kind = ItemKind::refuse;
  RefuseItem() : Item(node_kind) {}
  std::vector<KeyPattern> keys;
};

// ignore sliding_window, "pooler_*"
struct IgnoreItem : Item {
  static constexpr ItemKind node_kind = ItemKind::ignore;
  IgnoreItem() : Item(node_kind) {}
  std::vector<KeyPattern> keys;
};

// remove name, remove checkpoint gguf; in configs without `checkpoint`
struct RemoveItem : Item {
  static constexpr ItemKind node_kind = ItemKind::remove;
  RemoveItem() : Item(node_kind) {}
  bool checkpoint = false;
  Name name;
};

// --- Members of a module --------------------------------------------------------------------------------------------

// at .        at attention.self.query
struct At {
  bool self = false;  // `.`: no path of its own
  Tensor path;        // if not
  Span span;
};

// context c.max_position_embeddings
struct ContextMember : Item {
  static constexpr ItemKind node_kind = ItemKind::context;
  ContextMember() : Item(node_kind) {}
  ExprPtr value;
};

// override param weight at w: [n] = 1.0 if has_weight
struct ParamMember : Item {
  static constexpr ItemKind node_kind = ItemKind::param;
  ParamMember() : Item(node_kind) {}
  std::optional<Span> override_;
  Name name;
  std::optional<At> at;
  TypePtr type;
  ExprPtr default_value;  // may be null
  ExprPtr condition;      // may be null
};

// override const freqs: f32[n] = expr
struct ConstMember : Item {
  static constexpr ItemKind node_kind = ItemKind::constant;
  ConstMember() : Item(node_kind) {}
  std::optional<Span> override_;
  Name name;
  TypePtr type;
  ExprPtr value;
};

// override state cache: KVCache(heads, d) if cond
struct StateMember : Item {
  static constexpr ItemKind node_kind = ItemKind::state;
  StateMember() : Item(node_kind) {}
  std::optional<Span> override_;
  Name name;
  ExprPtr value;
  ExprPtr condition;  // may be null
};

// override name at path: expr if cond
struct ChildMember : Item {
  static constexpr ItemKind node_kind = ItemKind::child;
  ChildMember() : Item(node_kind) {}
  std::optional<Span> override_;
  Name name;
  std::optional<At> at;
  ExprPtr value;
  ExprPtr condition;  // may be null
};

// override forward(…) -> … { … }
struct MethodMember : Item {
  static constexpr ItemKind node_kind = ItemKind::method;
  MethodMember() : Item(node_kind) {}
  std::optional<Span> override_;
  Signature signature;
  Block body;
};

// override checkpoint gguf "llama" { rules }
struct CheckpointMember : Item {
  static constexpr ItemKind node_kind = ItemKind::checkpoint;
  CheckpointMember() : Item(node_kind) {}
  std::optional<Span> override_;
  Name format;
  std::optional<String> architecture;
  std::vector<RulePtr> rules;
};

// --- Sections -------------------------------------------------------------------------------------------------------

// policy { compute: f32   **.norm, x.y: f32 }
struct PolicySection : Item {
  static constexpr ItemKind node_kind = ItemKind::policy;
  PolicySection() : Item(node_kind) {}
  struct Entry {
    std::vector<Tensor> targets;
    Name dtype;
    Span span;
  };
  std::vector<Entry> entries;
};

// shard { c.num_attention_heads over tensor_parallel }
struct ShardSection : Item {
  static constexpr ItemKind node_kind = ItemKind::shard;
  ShardSection() : Item(node_kind) {}
  struct Entry {
    std::vector<Path> factors;
    Name over;
    Span span;
  };
  std::vector<Entry> entries;
};

// quantize { **.mlp: q8_0 or file   lm_head: never below f16 }
struct QuantizeSection : Item {
  static constexpr ItemKind node_kind = ItemKind::quantize;
  QuantizeSection() : Item(node_kind) {}
  struct Entry {
    std::vector<Tensor> targets;
    bool never_below = false;
    Name type;
    bool or_file = false;
    Span span;
  };
  std::vector<Entry> entries;
};

// place { model.layers[0..16]: gpu(0) }
struct PlaceSection : Item {
  static constexpr ItemKind node_kind = ItemKind::place;
  PlaceSection() : Item(node_kind) {}
  struct Entry {
    Tensor target;
    std::optional<Range> range;
    Name device;
    Literal number;
    Span span;
  };
  std::vector<Entry> entries;
};

// --- Tests ----------------------------------------------------------------------------------------------------------

// test "name" { … }
struct TestDecl : Item {
  static constexpr ItemKind node_kind = ItemKind::test;
  TestDecl() : Item(node_kind) {}
  String name;
  std::vector<TestItemPtr> items;
};

// --- File -----------------------------------------------------------------------------------------------------------

// import nn.attention as a
struct Import {
  Path path;
  std::optional<Name> alias;
  Span span;
};

// language 1  imports  declarations
struct File {
  source::FileId file;
  Literal language;  // an integer
  std::vector<Import> imports;
  std::vector<ItemPtr> decls;  // axis, config, variant, interface, module, function, op, encoding, test
  Span span;
};

}  // namespace modelc::ast
