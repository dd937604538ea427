// `checkpoint gguf { config { key = expr } }`: a configuration's tree from a file's metadata.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "frontend/sema/analyze.h"
#include "frontend/sema/config_metadata.h"
#include "frontend/sema/imports.h"
#include "frontend/sema/module_def.h"
#include "frontend/syntax/ast.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

// An f32 is the number that its shortest text says: 1e-05 and not 9.999999747378752e-06.
Json json_of(const MetadataValue& v) {
  if (const auto b = v.as_bool()) return Json(*b);
  if (v.is_string()) return Json(std::string(v.as_string().value_or("")));
  if (v.is_integer()) {
    if (const auto i = v.as_int()) return Json(*i);
    return Json(v.as_double().value_or(0));
  }
  if (v.is_array()) {
    JsonArray items;
    for (std::size_t i = 0; i < v.size(); ++i) items.push_back(json_of(v.at(i)));
    return Json(std::move(items));
  }
  const double d = v.as_double().value_or(0);
  if (v.type() == MetadataType::f32) return Json(parse_double(shortest(static_cast<float>(d))).value_or(d));
  return Json(d);
}

class MetadataConfig {
 public:
  MetadataConfig(const FileMetadata& file, std::string architecture, diag::Sink& sink)
      : file_(file), architecture_(std::move(architecture)), sink_(sink) {}

  bool failed() const { return failed_; }
  const std::set<std::string>& read() const { return read_; }

  std::string key_of(const std::string& path) const { return metadata_key(path, architecture_); }

  // The keys that the text mentions, in branches not taken too.
  void mention(const ast::Expr& e) {
    if (const auto path = name_path(e)) {
      read_.insert(key_of(*path));
      return;
    }
    if (const auto* u = ast::try_as<ast::UnaryExpr>(e)) return mention(*u->operand);
    if (const auto* b = ast::try_as<ast::BinaryExpr>(e)) {
      mention(*b->left);
      return mention(*b->right);
    }
    if (const auto* c = ast::try_as<ast::ConditionalExpr>(e)) {
      mention(*c->value);
      mention(*c->condition);
      return mention(*c->otherwise);
    }
    if (const auto* call = ast::try_as<ast::CallExpr>(e)) {
      if (const auto callee = name_path(*call->callee); callee && *callee == "has") return;
      for (const ast::Arg& a : call->args.items) mention(*a.value);
    }
    if (const auto* list = ast::try_as<ast::ListExpr>(e))
      for (const auto& item : list->items) mention(*item);
  }

  // Null: absent.
  Json eval(const ast::Expr& e) {
    if (failed_) return Json(nullptr);
    if (const auto path = name_path(e)) {
      const auto value = file_.values.find(key_of(*path));
      return value ? json_of(*value) : Json(nullptr);
    }
    switch (e.kind) {
      case ast::ExprKind::literal: {
        const auto& l = ast::as<ast::LiteralExpr>(e).value;
        switch (l.kind) {
          case ast::LiteralKind::string: return Json(l.text);
          case ast::LiteralKind::integer: return Json(l.integer);
          case ast::LiteralKind::floating: return Json(l.floating);
          case ast::LiteralKind::boolean: return Json(l.boolean);
          case ast::LiteralKind::none: return Json(nullptr);
        }
        break;
      }
      case ast::ExprKind::list: {
        JsonArray items;
        for (const auto& item : ast::as<ast::ListExpr>(e).items) items.push_back(eval(*item));
        return Json(std::move(items));
      }
      case ast::ExprKind::unary: {
        const auto& u = ast::as<ast::UnaryExpr>(e);
        const Json v = eval(*u.operand);
        if (v.is_null()) return v;
        if (u.op == ast::UnaryOp::not_) return v.as_bool() ? Json(!*v.as_bool()) : fail(e, "`not` takes true or false");
        if (v.as_int()) return Json(-*v.as_int());
        return v.as_double() ? Json(-*v.as_double()) : fail(e, "`-` takes a number");
      }
      case ast::ExprKind::conditional: {
        const auto& c = ast::as<ast::ConditionalExpr>(e);
        const Json condition = eval(*c.condition);
        if (!condition.as_bool()) return failed_ ? Json(nullptr) : fail(*c.condition, "a condition is true or false");
        return eval(*condition.as_bool() ? *c.value : *c.otherwise);
      }
      case ast::ExprKind::binary: return binary(ast::as<ast::BinaryExpr>(e));
      case ast::ExprKind::call: return call(ast::as<ast::CallExpr>(e));
      default: break;
    }
    return fail(e, "keys, literals, operators, has(tensor) and len(list) make up a configuration");
  }

 private:
  Json fail(const ast::Expr& e, const std::string& why) {
    if (!failed_) sink_.error(code::metadata_config, e.span, "this gives no value from the metadata of " + file_.name).note(why);
    failed_ = true;
    return Json(nullptr);
  }

  Json call(const ast::CallExpr& e) {
    const auto callee = name_path(*e.callee);
    if (!callee || e.args.items.size() != 1) return fail(e, "the calls are has(tensor), len(list), int(x) and float(x)");
    const ast::Expr& argument = *e.args.items[0].value;
    if (*callee == "has") {
      const auto* quoted = ast::try_as<ast::LiteralExpr>(argument);
      const auto path = quoted != nullptr ? std::optional(quoted->value.text) : name_path(argument);
      return path ? Json(file_.has_tensor(*path)) : fail(e, "`has` takes a tensor's name");
    }
    if (*callee == "len") {
      if (const auto path = name_path(argument)) {           // a vocabulary is counted without being read
        const auto value = file_.values.find(key_of(*path));
        if (!value) return Json(nullptr);
        return value->is_array() ? Json(static_cast<std::int64_t>(value->size())) : fail(e, *path + " is no list");
      }
      const Json v = eval(argument);
      return v.as_array() != nullptr ? Json(static_cast<std::int64_t>(v.as_array()->size())) : fail(e, "`len` takes a list");
    }
    const Json v = eval(argument);
    if (v.is_null()) return v;
    if (*callee == "float" && v.as_double()) return Json(*v.as_double());
    if (const std::string* word = v.as_string(); *callee == "float" && word != nullptr && *word == "Infinity")
      return Json(std::numeric_limits<double>::infinity());
    if (*callee == "int" && v.as_double() && std::abs(*v.as_double()) < 9e15) return Json(static_cast<std::int64_t>(*v.as_double()));
    return fail(e, "the calls are has(tensor), len(list), int(x) and float(x)");
  }

  Json binary(const ast::BinaryExpr& e) {
    using Op = ast::BinaryOp;
    const Json a = eval(*e.left);
    if (e.op == Op::coalesce) return a.is_null() ? eval(*e.right) : a;
    if (e.op == Op::and_ || e.op == Op::or_) {
      if (!a.as_bool()) return fail(*e.left, "`and` and `or` take true or false");
      if (*a.as_bool() == (e.op == Op::or_)) return a;
      const Json b = eval(*e.right);
      return b.as_bool() ? b : fail(*e.right, "`and` and `or` take true or false");
    }
    const Json b = eval(*e.right);
    if (failed_) return Json(nullptr);
    if (e.op == Op::eq || e.op == Op::ne) {
      const bool numbers = a.as_double() && b.as_double();
      const bool same = numbers ? *a.as_double() == *b.as_double() : dump(a) == dump(b);
      return Json(same == (e.op == Op::eq));
    }
    if (a.is_null() || b.is_null()) return Json(nullptr);  // an absent key stays absent
    if (!a.as_double() || !b.as_double()) return fail(e, "numbers are wanted on both sides");
    const double x = *a.as_double(), y = *b.as_double();
    switch (e.op) {
      case Op::lt: return Json(x < y);
      case Op::le: return Json(x <= y);
      case Op::gt: return Json(x > y);
      case Op::ge: return Json(x >= y);
      default: break;
    }
    if (a.as_int() && b.as_int()) {
      const std::int64_t i = *a.as_int(), j = *b.as_int();
      std::int64_t r = 0;
      switch (e.op) {
        case Op::add: return __builtin_add_overflow(i, j, &r) ? fail(e, "the result is too large") : Json(r);
        case Op::sub: return __builtin_sub_overflow(i, j, &r) ? fail(e, "the result is too large") : Json(r);
        case Op::mul: return __builtin_mul_overflow(i, j, &r) ? fail(e, "the result is too large") : Json(r);
        case Op::div:
        case Op::mod:
          if (j == 0 || (i == INT64_MIN && j == -1)) return fail(e, "division by zero");
          if (e.op == Op::mod) return Json(i % j);
          return i % j == 0 ? Json(i / j) : fail(e, std::to_string(i) + " / " + std::to_string(j) + " is not exact; float(a) / b is");
        default: break;
      }
    }
    switch (e.op) {
      case Op::add: return Json(x + y);
      case Op::sub: return Json(x - y);
      case Op::mul: return Json(x * y);
      case Op::div: return Json(x / y);
      case Op::pow: return Json(std::pow(x, y));
      default: return fail(e, "this operator is not one of metadata's");
    }
  }

  const FileMetadata& file_;
  std::string architecture_;
  diag::Sink& sink_;
  std::set<std::string> read_;
  bool failed_ = false;
};

// Sets a.b.c in a tree of objects.
void put(JsonObject& object, const ast::Path& path, std::size_t at, Json value) {
  const std::string& key = path.parts[at].text;
  if (at + 1 == path.parts.size()) {
    object.set(key, std::move(value));
    return;
  }
  Json* below = object.find(key);
  if (below == nullptr || !below->is_object()) {
    object.set(key, Json(JsonObject{}));
    below = object.find(key);
  }
  put(*below->as_object(), path, at + 1, std::move(value));
}

}  // namespace

std::string metadata_key(const std::string& path, const std::string& architecture) {
  return path == "arch" || path.starts_with("arch.") ? architecture + path.substr(4) : path;
}

std::optional<std::string> name_path(const ast::Expr& e) {
  if (const auto* name = ast::try_as<ast::NameExpr>(e)) return name->name.text;
  const auto* member = ast::try_as<ast::MemberExpr>(e);
  if (member == nullptr) return std::nullopt;
  auto object = name_path(*member->object);
  if (object) *object += "." + member->name.text;
  return object;
}

std::optional<GgufConfigLines> gguf_config_lines(const Imports& imports, diag::Sink& sink) {
  GgufConfigLines out;
  for (const ast::ItemPtr& item : imports.main().ast->decls) {
    const auto* module = ast::try_as<ast::ModuleDecl>(*item);
    if (module == nullptr || !module->is_model) continue;
    out.model = imports.main().own(module->name.text);
    if (out.model != nullptr) break;
  }
  if (out.model == nullptr) return std::nullopt;           // said by analyze
  diag::Sink aside;                                        // what is wrong with the definition is said by analyze
  ModuleDefs defs(aside);
  const ModuleDef* def = defs.get(*out.model);
  if (def == nullptr) return std::nullopt;

  out.levels = def->levels;
  std::map<std::string, std::size_t> level_of;             // the first block that has the key
  std::set<std::string> unconditional;
  bool any = false;
  for (const CheckpointDef& c : def->checkpoints) {
    if (c.format != "gguf") continue;
    for (const auto& block : c.blocks) {                   // the most derived first
      if (block.item->architecture && !out.architecture) out.architecture = block.item->architecture;
      for (const ast::RulePtr& rule : block.item->rules) {
        const auto* config = ast::try_as<ast::ConfigRule>(*rule);
        if (config == nullptr) continue;
        if (!any) out.where = config->span;
        any = true;
        for (const auto& entry : config->entries) {
          for (const ast::Path& p : entry.ignored) out.ignored.push_back(&p);
          if (!entry.ignored.empty()) continue;
          out.every.push_back(entry.value.get());
          const std::string key = entry.key.text();
          if (level_of.emplace(key, block.level).first->second != block.level) continue;
          if (!entry.when && !unconditional.insert(key).second) continue;
          out.lines.push_back({&entry.key, entry.value.get(), entry.when.get(), block.level});
        }
      }
    }
  }
  if (any) return out;
  sink.error(code::metadata_config, out.model->span,
             "`" + out.model->name + "` does not say how to make its configuration of a GGUF file's metadata")
      .help("`checkpoint gguf \"architecture\" { config { key = arch.key } }` in the model, or --config config.json");
  return std::nullopt;
}

std::optional<Json> config_of_metadata(const Imports& imports, const FileMetadata& file, diag::Sink& sink) {
  const auto lines = gguf_config_lines(imports, sink);
  if (!lines) return std::nullopt;
  const auto general = file.values.find("general.architecture");
  const std::string found = general && general->as_string() ? std::string(*general->as_string()) : "";
  const auto& architecture = lines->architecture;
  if (architecture && found != architecture->value) {
    sink.error(code::wrong_architecture, architecture->span,
               "the model's GGUF files are of architecture `" + architecture->value + "`, and " + file.name +
                   (found.empty() ? " does not say which it is of" : " is of " + quote(found)))
        .help("another model file describes it");
    return std::nullopt;
  }

  MetadataConfig metadata(file, found, sink);
  JsonObject tree;
  std::set<std::string> ignored;
  for (const ast::Path* p : lines->ignored) ignored.insert(metadata.key_of(p->text()));
  for (const ast::Expr* e : lines->every) metadata.mention(*e);
  // Of the lines of one key the first that the file answers: a condition is on the configuration, which is not there yet.
  std::set<std::string> answered;
  for (const bool conditional : {true, false})
    for (const GgufConfigLines::Line& line : lines->lines) {
      if ((line.when != nullptr) != conditional || answered.contains(line.key->text())) continue;
      Json value = metadata.eval(*line.value);
      if (metadata.failed()) return std::nullopt;
      if (value.is_null()) continue;
      put(tree, *line.key, 0, std::move(value));
      answered.insert(line.key->text());
    }
  // Closed, as config.json is: what the architecture says is read, or ignored by name.
  std::vector<std::string> unread;
  for (std::string_view key : file.values.keys())
    if (!found.empty() && key.starts_with(found + ".") && !metadata.read().contains(std::string(key)) &&
        !ignored.contains(std::string(key)))
      unread.emplace_back(key);
  if (!unread.empty()) {
    std::vector<std::string> shown;
    for (const std::string& key : unread) shown.push_back(printable(key) + " = " + file.values.find(key)->text(4, 60));
    auto message =
        sink.error(code::metadata_config, lines->where, file.name + " has " + counted(unread.size(), "key") + " that no line reads");
    for (std::size_t i = 0; i < shown.size() && i < 10; ++i) message.note(shown[i]);
    if (shown.size() > 10) message.note("… and " + std::to_string(shown.size() - 10) + " more");
    message.help("a line that reads it, or `ignore arch" + unread.front().substr(found.size()) + "`");
    return std::nullopt;
  }
  return Json(std::move(tree));
}

}  // namespace modelc::sema
