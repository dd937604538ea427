// A GGUF file's metadata from a configuration, by the lines that read it, and whether what they give is the same again.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "frontend/sema/config.h"
#include "frontend/sema/config_metadata.h"
#include "frontend/sema/config_tree.h"
#include "frontend/sema/conversion.h"
#include "frontend/sema/evaluator.h"
#include "frontend/sema/imports.h"
#include "frontend/sema/module_def.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

const ast::FieldItem* item_of(const ConfigField& f) { return f.decl; }

// A value of the configuration as JSON; `real` when it is one, or a list of them. Nothing for what has no place there.
std::optional<Json> json_of(const Value& v, bool& real) {
  switch (v.kind()) {
    case ValueKind::boolean: return Json(v.as_bool());
    case ValueKind::integer: return Json(v.as_int());
    case ValueKind::real: real = true; return Json(v.as_real());
    case ValueKind::string: return Json(v.as_string());
    case ValueKind::list: {
      JsonArray items;
      for (const Value& item : v.items()) {
        auto j = json_of(item, real);
        if (!j) return std::nullopt;
        items.push_back(std::move(*j));
      }
      return Json(std::move(items));
    }
    default: return std::nullopt;
  }
}

bool is_prefix(const std::vector<std::string>& prefix, const std::vector<std::string>& path) {
  return prefix.size() <= path.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}
std::vector<std::string> parts_of(const ast::Path& path) {
  std::vector<std::string> parts;
  for (const ast::Name& n : path.parts) parts.push_back(n.text);
  return parts;
}

// The bound value that config.json has at this path, under any of its spellings; none where there is none.
std::optional<Value> value_at(const ConfigInstance& config, const std::vector<std::string>& path);

std::optional<Value> value_below(const Value& v, const std::vector<std::string>& rest) {
  if (rest.empty()) return v;
  if (v.is(ValueKind::config)) return value_at(v.as_config(), rest);
  if (!v.is(ValueKind::variant)) return std::nullopt;
  const VariantInstance& variant = v.as_variant();
  if (variant.fields->fields.empty()) return std::nullopt; // it says no more than its absence does
  const auto& decl = ast::as<ast::VariantDecl>(*variant.definition->symbol->decl);
  for (const ast::Path& tag : decl.tag_keys)
    if (parts_of(tag) == rest) return Value::string(variant.tag);
  return value_at(*variant.fields, rest);
}

std::optional<Value> value_at(const ConfigInstance& config, const std::vector<std::string>& path) {
  for (const ConfigField& f : config.fields) {
    if (f.decl == nullptr) continue;
    std::vector<std::vector<std::string>> spellings = {{f.name}};
    for (const ast::Path& from : item_of(f)->from) spellings.push_back(parts_of(from));
    for (const auto& s : spellings) {
      if (!is_prefix(s, path)) continue;
      if (auto v = value_below(f.value, {path.begin() + static_cast<std::ptrdiff_t>(s.size()), path.end()})) return v;
    }
  }
  return std::nullopt;
}

// What each key gets: from the line that has it first, else from one that falls back on it.
class Writer {
 public:
  explicit Writer(std::string architecture) : architecture_(std::move(architecture)) {}

  void put(const ast::Expr& e, const Json& v, bool real, bool first) {
    if (const auto path = name_path(e)) {
      const std::string key = metadata_key(*path, architecture_);
      // general.… and tokenizer.… are the file's own; modelc.… is what other programs do not ask for.
      if (!key.starts_with(architecture_ + ".") && !key.starts_with("modelc.")) return;
      auto [it, fresh] = at_.emplace(key, items_.size());
      if (fresh) {
        items_.push_back({{key, v, real}, first});
      } else if (first && !items_[it->second].first) {
        items_[it->second] = {{key, v, real}, true};
      }
      return;
    }
    if (const auto* b = ast::try_as<ast::BinaryExpr>(e); b != nullptr && b->op == ast::BinaryOp::coalesce) {
      put(*b->left, v, real, first);
      put(*b->right, v, real, false);
      return;
    }
    const auto* call = ast::try_as<ast::CallExpr>(e);
    if (call == nullptr || call->args.items.size() != 1) return;
    const auto callee = name_path(*call->callee);
    const ast::Expr& argument = *call->args.items[0].value;
    if (callee == "float" && v.as_double()) put(argument, Json(*v.as_double()), true, first);
    if (callee == "int" && v.as_int()) put(argument, v, false, first);
  }

  std::vector<MetadataOfConfig::Item> items() {
    std::vector<MetadataOfConfig::Item> out;
    for (Slot& s : items_) out.push_back(std::move(s.item));
    return out;
  }

 private:
  struct Slot {
    MetadataOfConfig::Item item;
    bool first;
  };
  std::string architecture_;
  std::vector<Slot> items_;
  std::map<std::string, std::size_t> at_;
};

// The configuration of a model that takes one, bound; its value is an error when it does not bind.
struct Bound {
  Bound(source::SourceManager& sources, diag::Sink& sink) : evaluator(sources, dims, sink) {}
  graph::DimTable dims;
  Evaluator evaluator;
  const Symbol* symbol = nullptr;
  Value value;

  // What a condition sees in a block of the model or of a base, by level: the configuration under the names that it has
  // there. Fewer where a base's arguments are wrong, which analyze says.
  std::vector<Environment> environments(const GgufConfigLines& lines) {
    std::vector<Environment> out;
    Environment scope(lines.levels[0].symbol->file);
    for (const ast::Param& param : lines.levels[0].decl->params) scope.define(param.name.text, value, param.span);
    out.push_back(scope);
    for (std::size_t level = 1; level < lines.levels.size(); ++level) {
      const ast::ModuleDecl& derived = *lines.levels[level - 1].decl;
      const ModuleDef::Level& base = lines.levels[level];
      std::vector<Argument> arguments;
      if (derived.base_args) arguments = evaluator.arguments(*derived.base_args, scope);
      Environment next(base.symbol->file);
      if (!evaluator.bind(base.decl->params, arguments, "`" + base.symbol->name + "`", derived.span, next)) break;
      out.push_back(next);
      scope = std::move(next);
    }
    return out;
  }
};

std::unique_ptr<Bound> bind(source::SourceManager& sources, const Imports& imports, const Symbol& model, const ConfigInput& input,
                            diag::Sink& sink) {
  auto bound = std::make_unique<Bound>(sources, sink);
  const auto& decl = ast::as<ast::ModuleDecl>(*model.decl);
  std::vector<std::string> notes;                          // said when the model was analyzed
  std::size_t configs = 0;
  for (const ast::Param& param : decl.params) {
    const auto* type = ast::try_as<ast::NamedType>(param.type);
    bool failed = false;
    diag::Sink aside;
    const Symbol* symbol = type == nullptr ? nullptr : resolve(*model.file, type->path.parts.front().text, type->span, aside, failed);
    if (symbol == nullptr || symbol->kind != SymbolKind::config) continue;
    if (++configs > 1) {
      sink.error(code::metadata_config, param.span, "`" + model.name + "` takes several configurations, and a GGUF file holds one");
      return nullptr;
    }
    bound->symbol = symbol;
    bound->value = bind_config(bound->evaluator, *symbol, input, notes);
  }
  static_cast<void>(imports);
  return bound->value.is(ValueKind::config) ? std::move(bound) : nullptr;
}

bool says_nothing(const Value& v) { return v.is_none() || (v.is(ValueKind::variant) && v.as_variant().fields->fields.empty()); }

bool same(const Value& a, const Value& b) {
  if (says_nothing(a) && says_nothing(b)) return true;
  if (a.is_number() && b.is_number())
    return a.as_real() == b.as_real() || static_cast<float>(a.as_real()) == static_cast<float>(b.as_real());
  if (a.is(ValueKind::list) && b.is(ValueKind::list))
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), same);
  return equal(a, b);
}

void compare(const ConfigInstance& a, const ConfigInstance& b, const std::string& path, std::vector<std::string>& out) {
  for (const ConfigField& x : a.fields) {
    if (x.decl == nullptr) continue;
    const ConfigField* y = b.find(x.name);
    if (y == nullptr || same(x.value, y->value)) continue;
    if (x.value.is(ValueKind::config) && y->value.is(ValueKind::config)) {
      compare(x.value.as_config(), y->value.as_config(), path + x.name + ".", out);
    } else if (x.value.is(ValueKind::variant) && y->value.is(ValueKind::variant) &&
               x.value.as_variant().case_index == y->value.as_variant().case_index) {
      compare(*x.value.as_variant().fields, *y->value.as_variant().fields, path + x.name + ".", out);
    } else {
      out.push_back(path + x.name + " is " + show(x.value, 60) + " " + x.origin + ", and would come back as " + show(y->value, 60));
    }
  }
}

// Of a key's lines those whose condition holds; where none does, the one without a condition. Nothing where a condition gives
// no answer.
std::optional<std::vector<const GgufConfigLines::Line*>> written_lines(Bound& bound, const GgufConfigLines& lines) {
  std::vector<const GgufConfigLines::Line*> taken;
  std::set<std::string> conditional;
  const std::vector<Environment> environments = bound.environments(lines);
  for (const GgufConfigLines::Line& line : lines.lines) {
    if (line.when == nullptr || line.level >= environments.size()) continue;
    const auto holds = bound.evaluator.condition(*line.when, environments[line.level]);
    if (!holds) return std::nullopt;
    if (!*holds) continue;
    taken.push_back(&line);
    conditional.insert(line.key->text());
  }
  for (const GgufConfigLines::Line& line : lines.lines)
    if (line.when == nullptr && !conditional.contains(line.key->text())) taken.push_back(&line);
  return taken;
}

}  // namespace

Json tree_with_overrides(const source::SourceManager& sources, const ConfigInput& input, diag::Sink& sink) {
  return ConfigTree(input, input.name, input.tree, true, sources, input.text, sink).root();
}

std::vector<std::string> keys_of_file(source::SourceManager& sources, const Imports& imports, const ConfigInput& input) {
  diag::Sink aside;                                        // said when the model was analyzed
  const auto lines = gguf_config_lines(imports, aside);
  const auto bound = lines ? bind(sources, imports, *lines->model, input, aside) : nullptr;
  const auto taken = bound ? written_lines(*bound, *lines) : std::nullopt;
  if (!taken) return {};
  std::set<std::string> written, all;
  for (const GgufConfigLines::Line& line : lines->lines) all.insert(line.key->text());
  for (const GgufConfigLines::Line* line : *taken) written.insert(line->key->text());
  std::vector<std::string> out;
  std::set_difference(all.begin(), all.end(), written.begin(), written.end(), std::back_inserter(out));
  return out;
}

std::optional<MetadataOfConfig> metadata_of_config(source::SourceManager& sources, const Imports& imports, const ConfigInput& input,
                                                   diag::Sink& sink) {
  const auto lines = gguf_config_lines(imports, sink);
  if (!lines) return std::nullopt;
  if (!lines->architecture) {
    sink.error(code::metadata_config, lines->where, "the block does not say which architecture its files are of")
        .help("`checkpoint gguf \"architecture\" { … }`");
    return std::nullopt;
  }
  const auto bound = bind(sources, imports, *lines->model, input, sink);
  if (!bound) return std::nullopt;
  const ConfigInstance& config = bound->value.as_config();
  MetadataOfConfig out;
  out.architecture = lines->architecture->value;
  Writer writer(out.architecture);
  const auto taken = written_lines(*bound, *lines);
  if (!taken) return std::nullopt;
  for (const GgufConfigLines::Line* each : *taken) {
    const GgufConfigLines::Line& line = *each;
    const auto value = value_at(config, parts_of(*line.key));
    bool real = false;
    if (const auto json = value ? json_of(*value, real) : std::nullopt) writer.put(*line.value, *json, real, true);
  }
  out.items = writer.items();

  std::set<std::string> known;
  for (const ConfigField& f : config.fields) {
    if (f.decl == nullptr) continue;
    if (f.decl->from.empty()) known.insert(f.name);
    for (const ast::Path& from : f.decl->from) known.insert(from.parts.front().text);
  }
  if (const JsonObject* tree = input.tree.as_object())
    for (const JsonMember& m : *tree)
      if (!known.contains(m.key)) out.lost.push_back(m.key);
  return out;
}

std::optional<std::vector<std::string>> config_differences(source::SourceManager& sources, const Imports& imports, const ConfigInput& a,
                                                           const ConfigInput& b, diag::Sink& sink) {
  const auto lines = gguf_config_lines(imports, sink);
  if (!lines) return std::nullopt;
  diag::Sink back;
  const auto x = bind(sources, imports, *lines->model, a, sink), y = bind(sources, imports, *lines->model, b, back);
  if (!x) return std::nullopt;
  std::vector<std::string> out;
  if (!y) {
    for (const diag::Diagnostic& d : back.diagnostics()) out.push_back(d.message);
    return out;
  }
  compare(x->value.as_config(), y->value.as_config(), "", out);
  return out;
}

std::vector<QuantizeRule> quantize_rules(const source::SourceManager& sources, const Imports& imports) {
  std::vector<QuantizeRule> out;
  diag::Sink aside;
  ModuleDefs defs(aside);
  for (const ast::ItemPtr& item : imports.main().ast->decls) {
    const auto* module = ast::try_as<ast::ModuleDecl>(*item);
    const Symbol* model = module != nullptr && module->is_model ? imports.main().own(module->name.text) : nullptr;
    const ModuleDef* def = model != nullptr ? defs.get(*model) : nullptr;
    if (def == nullptr) continue;
    for (const auto& section : def->sections) {
      const auto* quantize = ast::try_as<ast::QuantizeSection>(*section.item);
      if (quantize == nullptr) continue;
      for (const auto& entry : quantize->entries)
        for (const ast::Tensor& t : entry.targets)
          if (const auto encoding = encoding_from_name(entry.type.text))
            out.push_back({t.text, *encoding, entry.never_below, entry.or_file, sources.place(entry.span)});
    }
    break;
  }
  return out;
}

}  // namespace modelc::sema
