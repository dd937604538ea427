#include "codegen/driver/test_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "codegen/driver/backends.h"
#include "runtime/base/strings.h"

namespace modelc::driver {

namespace {

Error problem(const std::string& message) { return Error{"test", message, {}, {}}; }

std::optional<Json> unplaced(const ast::Expr& e);

// A value written in a test block: numbers, strings, booleans, none, lists and objects of these. Its place is the byte in the
// file that has the block; the line is left to place_lines().
std::optional<Json> literal(const ast::Expr& e) {
  auto value = unplaced(e);
  if (value) value->set_place(e.span.begin, 0);
  return value;
}

std::optional<Json> unplaced(const ast::Expr& e) {
  if (const auto* l = ast::try_as<ast::LiteralExpr>(e)) {
    switch (l->value.kind) {
      case ast::LiteralKind::string: return Json(l->value.text);
      case ast::LiteralKind::integer: return Json(static_cast<std::int64_t>(l->value.integer));
      case ast::LiteralKind::floating: return Json(l->value.floating);
      case ast::LiteralKind::boolean: return Json(l->value.boolean);
      case ast::LiteralKind::none: return Json(nullptr);
    }
  }
  if (const auto* u = ast::try_as<ast::UnaryExpr>(e); u && u->op == ast::UnaryOp::negate) {
    const auto v = literal(*u->operand);
    if (v && v->as_int()) return Json(-*v->as_int());
    if (v && v->as_double()) return Json(-*v->as_double());
  }
  if (const auto* list = ast::try_as<ast::ListExpr>(e)) {
    JsonArray array;
    for (const auto& item : list->items) {
      auto v = literal(*item);
      if (!v) return std::nullopt;
      array.push_back(std::move(*v));
    }
    return Json(std::move(array));
  }
  return std::nullopt;
}

std::optional<Json> object_value(const ast::Object& object) {
  JsonObject j;
  for (const auto& entry : object.entries) {
    auto v = entry.object ? object_value(*entry.object) : literal(*entry.value);
    if (!v) return std::nullopt;
    // Said twice, the last counts.
    j.erase(entry.key.text);
    j.append({entry.key.text, std::move(*v), entry.key.span.begin, 0});
  }
  Json value(std::move(j));
  value.set_place(object.span.begin, 0);
  return value;
}

Result<double> within_of(const ast::Expr& e) {
  const auto v = literal(e);
  if (!v || !v->as_double()) return problem("`within` takes a number");
  return *v->as_double();
}

// "prefill(24)", "encode", "heard(frames: 20)"
Result<std::string> run_text(const ast::Call& call) {
  std::string text = call.name.text;
  if (!call.args) return text;
  text += "(";
  for (const auto& a : call.args->items) {
    const auto v = literal(*a.value);
    if (!v || !v->as_int()) return problem(fmt::format("`{}` takes whole numbers: of tokens, or the sizes of axes", call.name.text));
    if (text.back() != '(') text += ",";
    if (a.name) text += a.name->text + ":";
    text += std::to_string(*v->as_int());
  }
  return text + ")";
}

Status add_same(const ast::SameTestItem& item, TestBlock& block) {
  auto within = within_of(*item.within);
  if (!within) return std::move(within.error());
  TestBlock::Same same{{}, *within};
  for (const auto& joined : item.runs) {
    std::string text;
    for (const ast::Call& call : joined) {
      auto one = run_text(call);
      if (!one) return std::move(one.error());
      text += (text.empty() ? "" : "+") + *one;
    }
    same.runs.push_back(std::move(text));
  }
  const auto is_backend = [](const std::string& run) { return find_backend(run) != nullptr; };
  if (std::none_of(same.runs.begin(), same.runs.end(), is_backend)) {
    block.same.push_back(std::move(same));
    return {};
  }
  for (const std::string& run : same.runs) {
    if (is_backend(run)) continue;
    std::vector<std::string> names;
    for (const Backend& b : backends()) names.emplace_back(b.name);
    return problem(fmt::format("`{}` stands beside backends in `same`, and is none: they are {}", run, join(names, ", ")));
  }
  block.alike.push_back(std::move(same));
  return {};
}

}  // namespace

void merge(Json& into, const Json& with) {
  JsonObject* target = into.as_object();
  for (const JsonMember& m : *with.as_object()) {
    Json* there = target->find(m.key);
    if (there && there->is_object() && m.value.is_object()) merge(*there, m.value);
    else target->set(m.key, m.value);
  }
}

void place_lines(Json& value, source::FileId file, const source::SourceManager& sources) {
  value.set_place(value.offset(), sources.position(file, value.offset()).line);
  if (JsonArray* array = value.as_array())
    for (Json& item : *array) place_lines(item, file, sources);
  if (const JsonObject* object = value.as_object()) {
    JsonObject placed;
    for (JsonMember member : *object) {
      place_lines(member.value, file, sources);
      member.line = sources.position(file, member.offset).line;
      placed.append(std::move(member));
    }
    const std::uint32_t offset = value.offset(), line = value.line();
    value = Json(std::move(placed));
    value.set_place(offset, line);
  }
}

Result<TestBlock> read_test(const ast::TestDecl& decl, const std::string& folder) {
  TestBlock block;
  const auto resolve = [&](const std::string& path) { return (std::filesystem::path(folder) / path).string(); };
  for (const auto& item : decl.items) {
    if (const auto* c = ast::try_as<ast::ConfigTestItem>(*item)) {
      if (c->file) block.config_file = resolve(c->file->value);
      if (c->values) {
        auto v = object_value(*c->values);
        if (!v) return problem("a configuration in a test holds numbers, strings, booleans, none, lists and objects of these");
        block.values = std::move(*v);
      }
    } else if (const auto* k = ast::try_as<ast::CheckpointTestItem>(*item)) {
      if (k->file) block.checkpoints.push_back(resolve(k->file->value));
      else block.seed = static_cast<std::uint64_t>(k->seed->integer);
    } else if (const auto* e = ast::try_as<ast::ExpectTestItem>(*item)) {
      auto within = within_of(*e->within);
      if (!within) return std::move(within.error());
      block.expect.emplace_back(resolve(e->file.value), *within);
    } else if (const auto* m = ast::try_as<ast::SameTestItem>(*item)) {
      if (Status s = add_same(*m, block); !s) return std::move(s.error());
    } else if (const auto* wrong = ast::try_as<ast::ErrorTestItem>(*item)) {
      block.error = wrong->code.text;
      if (wrong->text) block.error_text = wrong->text->value;
    } else if (const auto* input = ast::try_as<ast::InputTestItem>(*item)) {
      for (const ast::InputTestItem* before : block.inputs)
        if (before->name.text == input->name.text) return problem(fmt::format("`input {}` is written twice", input->name.text));
      block.inputs.push_back(input);
    } else if (const auto* op = ast::try_as<ast::OpTestItem>(*item)) {
      if (block.op != nullptr) return problem("a test is of one operation: `op` is written twice");
      block.op = op;
    }
  }
  const bool compares = !block.expect.empty() || !block.same.empty() || !block.alike.empty();
  if (block.error && compares) return problem("`error` stands alone: a model that is refused gives nothing to compare");
  if (!block.error && !compares) return problem("it asks for nothing: `expect`, `same` or `error`");
  if (block.op == nullptr) return block;
  if (!block.checkpoints.empty() || block.seed || !block.config_file.empty() || block.values)
    return problem("a test of an operation has no configuration and no checkpoint: the operation takes its inputs alone");
  if (!block.same.empty())
    return problem(fmt::format("`{}` is a run of the model, and this test is of an operation: `same reference, cpu within 1e-6`",
                               block.same[0].runs[0]));
  return block;
}

}  // namespace modelc::driver
