// Definitions of configs and variants: inheritance resolved, names and types of the items looked at.
#include <algorithm>
#include <set>

#include "frontend/sema/config.h"
#include "frontend/sema/expressions.h"
#include "frontend/sema/types.h"
#include "frontend/sema/walk.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

const FieldDef* ConfigDef::field(std::string_view field_name) const {
  for (const FieldDef& f : fields) {
    if (f.name == field_name) return &f;
  }
  return nullptr;
}

bool ConfigDef::is_a(const Symbol& other) const {
  for (const ConfigDef* def = this; def != nullptr; def = def->base) {
    if (def->symbol == &other) return true;
  }
  return false;
}

std::optional<std::size_t> VariantDef::find(std::string_view tag) const {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const ast::String& own : cases[i].decl->tags) {
      if (own.value == tag) return i;
    }
  }
  return std::nullopt;
}

std::vector<std::string> VariantDef::tags() const {
  std::vector<std::string> out;
  for (const Case& c : cases) {
    for (const ast::String& tag : c.decl->tags) out.push_back(tag.value);
  }
  return out;
}

namespace {

constexpr int max_chain = 64;

// What is known of names only, for checking: they are there.
class DeclaredNames : public NameSource {
 public:
  explicit DeclaredNames(const ConfigDef& def) : def_(def) {}
  std::optional<Value> lookup(std::string_view name, source::Span) const override {
    return declared(name) ? std::optional(Value::error()) : std::nullopt;
  }
  std::optional<Value> peek(std::string_view) const override { return std::nullopt; }
  std::optional<source::Span> declared(std::string_view name) const override {
    for (const FieldDef& f : def_.fields) {
      if (f.name == name) return f.span;
    }
    for (const LetDef& l : def_.lets) {
      if (l.name == name) return l.item->name.span;
    }
    for (const FunctionDef& f : def_.functions) {
      if (f.name == name) return f.item->name.span;
    }
    return std::nullopt;
  }
  void names(std::vector<std::string>& into) const override {
    for (const FieldDef& f : def_.fields) into.push_back(f.name);
    for (const LetDef& l : def_.lets) into.push_back(l.name);
    for (const FunctionDef& f : def_.functions) into.push_back(f.name);
  }

 private:
  const ConfigDef& def_;
};

}  // namespace

// Makes one definition from its items.
class ConfigDefiner {
 public:
  ConfigDefiner(Evaluator& evaluator, ConfigDef& def, const FileSymbols& file)
      : ev_(evaluator), sink_(evaluator.sink()), def_(def), file_(file) {}

  // False when something was wrong.
  bool define(const std::vector<ast::ItemPtr>& items, const ConfigDef* base) {
    const std::size_t before = sink_.error_count();
    if (base != nullptr) inherit(*base);
    for (const ast::ItemPtr& item : items) add(*item);
    check_key_rules();
    if (sink_.error_count() != before) return false;
    check_text(items);
    return sink_.error_count() == before;
  }

 private:
  void inherit(const ConfigDef& base) {
    def_.base = &base;
    def_.fields = base.fields;
    def_.lets = base.lets;
    def_.functions = base.functions;
    def_.requires_ = base.requires_;
    for (KeyRule rule : base.key_rules) {
      ++rule.level;
      def_.key_rules.push_back(rule);
    }
  }

  void add(const ast::Item& item) {
    switch (item.kind) {
      case ast::ItemKind::field: return add_field(ast::as<ast::FieldItem>(item));
      case ast::ItemKind::let: {
        const auto& let = ast::as<ast::LetItem>(item);
        if (is_new(let.name)) def_.lets.push_back({let.name.text, &let, &file_});
        return;
      }
      case ast::ItemKind::function: {
        const auto& function = ast::as<ast::FunctionDecl>(item);
        if (is_new(function.name)) def_.functions.push_back({function.name.text, &function, &file_});
        return;
      }
      case ast::ItemKind::require: def_.requires_.push_back({&ast::as<ast::RequireItem>(item), &file_}); return;
      case ast::ItemKind::refuse:
        for (const ast::KeyPattern& key : ast::as<ast::RefuseItem>(item).keys) def_.key_rules.push_back({&key, true, 0});
        return;
      case ast::ItemKind::ignore:
        for (const ast::KeyPattern& key : ast::as<ast::IgnoreItem>(item).keys) def_.key_rules.push_back({&key, false, 0});
        return;
      case ast::ItemKind::remove: return remove(ast::as<ast::RemoveItem>(item));
      default: return;  // the grammar has no other item here
    }
  }

  void add_field(const ast::FieldItem& item) {
    if (item.names.size() > 1 && !item.from.empty()) {
      sink_.error(diag::code::config_definition, item.from.front().span, "`from` belongs to a field of one name")
          .help("declare the fields one by one");
    }
    for (const ast::Name& name : item.names) {
      FieldDef field{name.text, &item, name.span, &file_, reads_itself(*item.type), false};
      const auto old = std::find_if(def_.fields.begin(), def_.fields.end(), [&](const FieldDef& f) { return f.name == name.text; });
      if (!item.override_) {
        if (is_new(name)) def_.fields.push_back(std::move(field));
        continue;
      }
      if (old == def_.fields.end() || own_.contains(name.text)) {
        std::vector<std::string> names;
        for (const FieldDef& f : def_.fields) names.push_back(f.name);
        sink_
            .error(diag::code::config_definition, name.span,
                   old == def_.fields.end() ? "`" + name.text + "` overrides nothing: no base has this field"
                                            : "`" + name.text + "` is declared twice in " + def_.name)
            .help(old == def_.fields.end() ? diag::did_you_mean(name.text, names) : "");
        continue;
      }
      own_.insert(name.text);
      field.mentioned = old->mentioned;
      *old = std::move(field);
    }
  }

  // A name that stands for nothing yet; else reports.
  bool is_new(const ast::Name& name) {
    const auto before = DeclaredNames(def_).declared(name.text);
    if (!before) {
      own_.insert(name.text);
      return true;
    }
    const bool own = own_.contains(name.text);
    const bool field = def_.field(name.text) != nullptr;
    sink_
        .error(diag::code::config_definition, name.span,
               own ? "`" + name.text + "` is declared twice in " + def_.name : "`" + name.text + "` is inherited from " + def_.base->name)
        .label(*before, "declared here")
        .help(own     ? ""
              : field ? "write `override " + name.text + ": …` to replace the field"
                      : "write `remove " + name.text + "` first to replace it");
    return false;
  }

  void remove(const ast::RemoveItem& item) {
    const auto erase = [&](auto& list) {
      return std::erase_if(list, [&](const auto& entry) { return entry.name == item.name.text; }) != 0;
    };
    if (own_.contains(item.name.text) || !(erase(def_.fields) || erase(def_.lets) || erase(def_.functions))) {
      std::vector<std::string> names;
      DeclaredNames(def_).names(names);
      sink_.error(diag::code::config_definition, item.name.span, "`remove " + item.name.text + "`: no base has this name")
          .help(diag::did_you_mean(item.name.text, names));
    }
  }

  void check_key_rules() {
    std::map<std::string, const ast::KeyPattern*> ignored;
    for (const KeyRule& rule : def_.key_rules) {
      if (rule.level == 0 && !rule.refuse) ignored.emplace(rule.pattern->text(), rule.pattern);
    }
    for (const KeyRule& rule : def_.key_rules) {
      const auto other = ignored.find(rule.pattern->text());
      if (rule.level != 0 || !rule.refuse || other == ignored.end()) continue;
      sink_.error(diag::code::config_key_rules, rule.pattern->span, "`" + rule.pattern->text() + "` is both refused and ignored")
          .label(other->second->span, "ignored here");
    }
  }

  // Types, and the names in all expressions; which fields these mention.
  void check_text(const std::vector<ast::ItemPtr>& items) {
    const DeclaredNames names(def_);
    const Environment env = Environment(&file_).with(names);
    for (const ast::ItemPtr& item : items) {
      const auto expr = [&](const ast::ExprPtr& e) {
        if (e) ev_.check_names(*e, env);
      };
      if (const auto* field = ast::try_as<ast::FieldItem>(*item)) {
        if (check_config_type(ev_, *field->type, env)) {
          each_expr(*field->type, [&](const ast::Expr& e) { ev_.check_names(e, env); });
        }
        if (field->range) each_expr(*field->range, [&](const ast::Expr& e) { ev_.check_names(e, env); });
        expr(field->default_value);
      } else if (const auto* let = ast::try_as<ast::LetItem>(*item)) {
        expr(let->value);
      } else if (const auto* require = ast::try_as<ast::RequireItem>(*item)) {
        expr(require->condition);
      } else if (const auto* function = ast::try_as<ast::FunctionDecl>(*item)) {
        Environment inner = env;
        for (const ast::Name& param : function->params) {
          Expressions(ev_).check_new_name(param, env);
          inner.define(param.text, Value::error(), param.span);
        }
        if (function->value) ev_.check_names(*function->value, inner);
        if (function->block) ev_.check_names(*function->block, inner);
      }
    }
    for (const FieldDef& field : def_.fields) {
      each_expr(*field.item->type, [&](const ast::Expr& e) { mention(e); });
      if (field.item->range) each_expr(*field.item->range, [&](const ast::Expr& e) { mention(e); });
      if (field.item->default_value) mention(*field.item->default_value);
    }
    for (const LetDef& let : def_.lets) mention(*let.item->value);
    for (const RequireDef& require : def_.requires_) mention(*require.item->condition);
    for (const FunctionDef& function : def_.functions) {
      if (function.item->value) mention(*function.item->value);
      if (function.item->block) mention(*function.item->block);
    }
  }

  void mention(const ast::Expr& expr) {
    if (const auto* name = ast::try_as<ast::NameExpr>(expr)) {
      for (FieldDef& field : def_.fields) field.mentioned = field.mentioned || field.name == name->name.text;
    }
    each_child(expr, [&](const ast::Expr& child) { mention(child); });
  }

  void mention(const ast::Block& block) {
    for (const ast::StatementPtr& statement : block.statements) {
      if (const auto* let = ast::try_as<ast::LetStatement>(*statement)) mention(*let->value);
      if (const auto* ret = ast::try_as<ast::ReturnStatement>(*statement)) {
        for (const auto& value : ret->values) mention(*value);
      }
      if (const auto* assign = ast::try_as<ast::AssignStatement>(*statement)) mention(*assign->value);
      if (const auto* loop = ast::try_as<ast::ForStatement>(*statement)) mention(loop->body);
    }
  }

  Evaluator& ev_;
  diag::Sink& sink_;
  ConfigDef& def_;
  const FileSymbols& file_;
  std::set<std::string, std::less<>> own_;  // names that this config itself declares or overrides
};

const ConfigDef* ConfigDefs::config(const Symbol& symbol) {
  auto [it, fresh] = configs_.try_emplace(&symbol);
  Entry<ConfigDef>& entry = it->second;
  if (!fresh) {
    if (entry.open) { evaluator_.sink().error(diag::code::config_definition, symbol.span, symbol.name + " extends itself"); }
    return entry.def.get();
  }
  entry.open = true;
  const auto& decl = ast::as<ast::ConfigDecl>(*symbol.decl);
  auto def = std::make_unique<ConfigDef>();
  def->symbol = &symbol;
  def->name = symbol.name;
  def->span = symbol.span;
  if (decl.file) def->file = decl.file->value;

  const ConfigDef* base = nullptr;
  bool good = true;
  if (decl.base && depth_ >= max_chain) {
    good = false;
    evaluator_.sink().error(diag::code::config_definition, decl.base->span,
                            "a chain of more than " + std::to_string(max_chain) + " configs that extend each other");
  } else if (decl.base) {
    bool failed = false;
    const Symbol* found = resolve(*symbol.file, decl.base->text, decl.base->span, evaluator_.sink(), failed);
    if (found != nullptr && found->kind == SymbolKind::config) {
      ++depth_;
      base = config(*found);
      --depth_;
    } else if (!failed) {
      std::vector<std::string> names;
      symbol_names(*symbol.file, names);
      evaluator_.sink()
          .error(diag::code::config_definition, decl.base->span,
                 found == nullptr ? "no config `" + decl.base->text + "` is known here"
                                  : "`" + decl.base->text + "` is a " + std::string(word(*found)) + ", not a config")
          .help(found == nullptr ? diag::did_you_mean(decl.base->text, names) : "");
    }
    good = base != nullptr;
  }
  good = good && ConfigDefiner(evaluator_, *def, *symbol.file).define(decl.items, base);
  Entry<ConfigDef>& made = configs_[&symbol];
  made.open = false;
  if (good) made.def = std::move(def);
  return made.def.get();
}

const VariantDef* ConfigDefs::variant(const Symbol& symbol) {
  auto [it, fresh] = variants_.try_emplace(&symbol);
  if (!fresh) return it->second.def.get();
  const auto& decl = ast::as<ast::VariantDecl>(*symbol.decl);
  auto def = std::make_unique<VariantDef>();
  def->symbol = &symbol;
  bool good = true;
  std::map<std::string, source::Span> seen;
  for (const ast::VariantCase& item : decl.cases) {
    for (const ast::String& tag : item.tags) {
      const auto [at, first] = seen.emplace(tag.value, tag.span);
      if (first) continue;
      good = false;
      evaluator_.sink()
          .error(diag::code::config_definition, tag.span, symbol.name + " has the case " + modelc::quote(tag.value) + " twice")
          .label(at->second, "the first");
    }
    VariantDef::Case made{&item, std::make_unique<ConfigDef>()};
    made.fields->name = symbol.name + " " + modelc::quote(item.tags.front().value);
    made.fields->span = item.tags.front().span;
    good = ConfigDefiner(evaluator_, *made.fields, *symbol.file).define(item.items, nullptr) && good;
    def->cases.push_back(std::move(made));
  }
  // A case may have a field of its own variant's type, so the entry is looked up again.
  Entry<VariantDef>& entry = variants_[&symbol];
  if (good) entry.def = std::move(def);
  return entry.def.get();
}

}  // namespace modelc::sema
