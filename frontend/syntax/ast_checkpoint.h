// The syntax tree, part two: patterns of tensor names and the rules of a checkpoint block.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/syntax/ast_expr.h"

namespace modelc::ast {

// --- Tensor patterns ------------------------------------------------------------------------------------------------

enum class SegKind {
  name,         // embed_tokens
  integer,      // 0
  star,         // *        one component
  double_star,  // **       any number
  index,        // {i}      an index
  rest,         // {rest*}  any number, bound
};

struct Seg {
  SegKind kind = SegKind::name;
  std::string text;  // the name, the digits, the variable; empty for * and **
  Span span;
};

// model.layers.{i}.weight, **.norm, or in quotes: "**.experts.*_proj"
struct Tensor {
  bool quoted = false;
  std::string text;       // what stands in the quotes, or the pattern as written without blanks
  std::vector<Seg> segs;  // empty if quoted
  Span span;
};

// one pattern, or [a, b]
struct Tensors {
  bool bracketed = false;
  std::vector<Tensor> items;
  Span span;
};

// transpose(0, 1), stack(e), prefill(24), reference
struct Call {
  Name name;
  std::optional<Args> args;
  Span span;
};

// --- Checkpoint rules -----------------------------------------------------------------------------------------------

enum class RuleKind { map, via, alias, ignore, encode, one_of, for_, config };

struct Rule {
  const RuleKind kind;
  Span span;

  virtual ~Rule() = default;

 protected:
  explicit Rule(RuleKind k) : kind(k) {}
};
using RulePtr = std::unique_ptr<Rule>;

// file = model via … when …
struct MapRule : Rule {
  static constexpr RuleKind node_kind = RuleKind::map;
  MapRule() : Rule(node_kind) {}
  Tensors file;
  Tensors model;
  std::vector<Call> via;
  ExprPtr when;  // may be null
};

// weight via offset(-1)
struct ViaRule : Rule {
  static constexpr RuleKind node_kind = RuleKind::via;
  ViaRule() : Rule(node_kind) {}
  Tensor tensor;
  std::vector<Call> via;
  ExprPtr when;  // may be null
};

// alias a = b
struct AliasRule : Rule {
  static constexpr RuleKind node_kind = RuleKind::alias;
  AliasRule() : Rule(node_kind) {}
  Tensor alias;
  Tensor target;
  ExprPtr when;  // may be null
};

// ignore a, b
struct IgnoreRule : Rule {
  static constexpr RuleKind node_kind = RuleKind::ignore;
  IgnoreRule() : Rule(node_kind) {}
  std::vector<Tensor> tensors;
  ExprPtr when;  // may be null
};

// encode "**" as stored(q)
struct EncodeRule : Rule {
  static constexpr RuleKind node_kind = RuleKind::encode;
  EncodeRule() : Rule(node_kind) {}
  Tensor tensor;
  ExprPtr encoding;
  ExprPtr when;  // may be null
};

// one_of { each { … } stacked { … } }
struct OneOfRule : Rule {
  static constexpr RuleKind node_kind = RuleKind::one_of;
  OneOfRule() : Rule(node_kind) {}
  struct Alternative {
    Name name;
    std::vector<RulePtr> rules;
    Span span;
  };
  std::vector<Alternative> alternatives;
};

// for RMSNorm { … }
struct ForRule : Rule {
  static constexpr RuleKind node_kind = RuleKind::for_;
  ForRule() : Rule(node_kind) {}
  Name module;
  std::vector<RulePtr> rules;
};

// config { hidden_size = arch.embedding_length   ignore arch.vocab_size }
struct ConfigRule : Rule {
  static constexpr RuleKind node_kind = RuleKind::config;
  ConfigRule() : Rule(node_kind) {}
  struct Entry {
    std::vector<Path> ignored;  // not empty: ignore a, b
    Path key;                   // else: key = value when …
    ExprPtr value;              // null if ignored
    ExprPtr when;               // may be null
    Span span;
  };
  std::vector<Entry> entries;
};

}  // namespace modelc::ast
