// The syntax tree, part three: the lines of a test.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "frontend/syntax/ast_checkpoint.h"
#include "frontend/syntax/ast_expr.h"

namespace modelc::ast {

enum class TestItemKind { op, config, checkpoint, input, expect, error, same };

struct TestItem {
  const TestItemKind kind;
  Span span;

  virtual ~TestItem() = default;

 protected:
  explicit TestItem(TestItemKind k) : kind(k) {}
};
using TestItemPtr = std::unique_ptr<TestItem>;

// { key: value   other: { … } }
struct Object {
  struct Entry;
  std::vector<Entry> entries;
  Span span;
};
struct Object::Entry {
  Name key;
  std::unique_ptr<Object> object;  // either this
  ExprPtr value;                   // or this; the other is null
  Span span;
};

// op xielu
struct OpTestItem : TestItem {
  static constexpr TestItemKind node_kind = TestItemKind::op;
  OpTestItem() : TestItem(node_kind) {}
  Name name;
};

// config "file" with { … }, config { … }
struct ConfigTestItem : TestItem {
  static constexpr TestItemKind node_kind = TestItemKind::config;
  ConfigTestItem() : TestItem(node_kind) {}
  std::optional<String> file;
  std::optional<Object> values;
};

// checkpoint "folder", checkpoint random 42
struct CheckpointTestItem : TestItem {
  static constexpr TestItemKind node_kind = TestItemKind::checkpoint;
  CheckpointTestItem() : TestItem(node_kind) {}
  std::optional<String> file;
  std::optional<Literal> seed;  // if no file
};

// input x = expr
struct InputTestItem : TestItem {
  static constexpr TestItemKind node_kind = TestItemKind::input;
  InputTestItem() : TestItem(node_kind) {}
  Name name;
  ExprPtr value;
};

// expect "file" within e
struct ExpectTestItem : TestItem {
  static constexpr TestItemKind node_kind = TestItemKind::expect;
  ExpectTestItem() : TestItem(node_kind) {}
  String file;
  ExprPtr within;
};

// error E0204 "rope_theta"
struct ErrorTestItem : TestItem {
  static constexpr TestItemKind node_kind = TestItemKind::error;
  ErrorTestItem() : TestItem(node_kind) {}
  Name code;
  std::optional<String> text;
};

// same prefill(24), prefill(12) + decode(12) within e
struct SameTestItem : TestItem {
  static constexpr TestItemKind node_kind = TestItemKind::same;
  SameTestItem() : TestItem(node_kind) {}
  std::vector<std::vector<Call>> runs;  // at least two, each of at least one call
  ExprPtr within;
};

}  // namespace modelc::ast
