#include "frontend/sema/instances.h"

#include <algorithm>
#include <cassert>

#include "frontend/graph/members.h"
#include "frontend/sema/function_builder.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

// "sizes[3]" as "sizes[": where in a list a size stood makes no class of its own.
std::string without_indices(const std::string& text) {
  std::string out;
  bool inside = false;
  for (const char c : text) {
    if (!inside) out += c;
    inside = inside ? c != ']' : c == '[';
  }
  return out;
}

// As canonical(), but that a configuration is known by its address: it stands in the arguments of every layer, and
// there is one of it.
void append_key(std::string& key, const Value& value) {
  if (value.is(ValueKind::config)) {
    key += 'c' + std::to_string(reinterpret_cast<std::uintptr_t>(&value.as_config()));
  } else if (value.is(ValueKind::recipe)) {
    key += 'R' + std::to_string(reinterpret_cast<std::uintptr_t>(value.as_recipe().symbol)) + (value.as_recipe().called ? "(" : "");
    for (const auto& [name, argument] : value.as_recipe().arguments) {
      append_key(key, argument);
      key += ',';
    }
    key += ')';
  } else if (value.is(ValueKind::list)) {
    key += '[';
    for (const Value& item : value.items()) {
      append_key(key, item);
      key += ',';
    }
    key += ']';
  } else {
    key += canonical(value);
  }
}

}  // namespace

std::string recipe_key(const Recipe& recipe) {
  std::string key;
  append_key(key, Value::recipe(recipe));
  for (const auto& [name, value] : recipe.arguments) {
    if (!value.is(ValueKind::integer) || !value.formula()) continue;
    key += ' ' + without_indices(formula_text(value.formula()));
  }
  return key;
}

namespace {

// An argument for a comment: modules by their names alone.
std::string argument_text(const Value& value) {
  if (value.is(ValueKind::recipe)) return value.as_recipe().symbol->name;
  const bool modules = value.is(ValueKind::list) && !value.items().empty() && value.items().front().is(ValueKind::recipe);
  return modules ? "[" + counted(value.items().size(), "module") + "]" : show(value, 60);
}

}  // namespace

// ---- the scope of an instance ---------------------------------------------------------------------------------------

std::optional<source::Span> Instance::declared(std::string_view name) const {
  const MemberDef* member = def.find(name);
  if (member == nullptr) return std::nullopt;
  return member->span;
}

void Instance::names(std::vector<std::string>& into) const {
  for (const MemberDef& member : def.members) into.push_back(member.name);
}

Value Instance::function(const MemberDef& member) const {
  const auto& decl = ast::as<ast::FunctionDecl>(*member.item);
  return Value::closure(
      Closure{member.name, &decl.params, decl.value.get(), decl.block ? &*decl.block : nullptr, environment(member.level), member.span});
}

std::optional<Value> Instance::peek(std::string_view name) const {
  const auto index = def.index_of(name);
  if (!index) return std::nullopt;
  const MemberDef& member = def.members[*index];
  if (member.kind == MemberKind::function) return function(member);
  if (member.kind == MemberKind::let && slots[*index].state == Slot::State::done) return slots[*index].value;
  return std::nullopt;
}

std::optional<Value> Instance::lookup(std::string_view name, source::Span use) const {
  const auto index = def.index_of(name);
  if (!index) return std::nullopt;
  const MemberDef& member = def.members[*index];
  switch (member.kind) {
    case MemberKind::let: return const_cast<Instance*>(this)->let(*index);
    case MemberKind::function: return function(member);
    default: break;
  }
  if (owner_.builder != nullptr && owner_.builder->is_inside(*this)) return owner_.builder->member(*index, use);
  if (is_axis(*def.levels[member.level].symbol->file, member.name)) return Value::error();   // said of the declaration
  diag::Sink& sink = owner_.sink();
  const std::string what = "`" + member.name + "` is a " + std::string(word(member.kind)) + " of `" + def.name() + "`";
  if (owner_.builder != nullptr) {
    sink.error(code::needs_tensors, use, what + ", and a fn passed to another module cannot reach it")
        .label(member.span, "declared here")
        .help("pass it as an argument of the fn");
  } else if (member.kind == MemberKind::child) {
    sink.error(code::needs_tensors, use, what + ", not a recipe: a module's arguments are known before it has children")
        .label(member.span, "declared here")
        .help("write the module with its arguments again, or give it a name with `fn`");
  } else {
    sink.error(code::needs_tensors, use, what + ": what it holds is known only when the model runs").label(member.span, "declared here");
  }
  return Value::error();
}

Value Instance::let(std::size_t member) {
  Slot& slot = slots[member];
  if (slot.state == Slot::State::done) return slot.value;
  const MemberDef& m = def.members[member];
  if (slot.state == Slot::State::working) {
    std::string circle;
    for (auto it = std::find(open_.begin(), open_.end(), member); it != open_.end(); ++it)
      circle += "`" + def.members[*it].name + "` needs ";
    auto message =
        owner_.sink().error(code::member_cycle, m.span, "the value of `" + m.name + "` depends on itself: " + circle + "`" + m.name + "`");
    for (auto it = std::find(open_.begin(), open_.end(), member); it != open_.end(); ++it)
      if (*it != member) message.label(def.members[*it].span, "`" + def.members[*it].name + "` is declared here");
    slot.failed = true;
    return Value::error();
  }
  slot.state = Slot::State::working;
  open_.push_back(member);
  const StaticScope guard(owner_);
  Value value = owner_.evaluator().eval(*ast::as<ast::LetItem>(*m.item).value, environment(m.level));
  open_.pop_back();
  if (slot.failed) value = Value::error();
  if (value.is_number()) {
    const FormulaPtr& f = value.formula();
    const bool named = f && f->kind == Formula::Kind::named && f->text == m.name;
    if (!named) value = value.with_formula(named_formula(m.name, show(value), "", f));
  }
  slot.state = Slot::State::done;
  slot.value = value;
  return value;
}

// ---- instances ------------------------------------------------------------------------------------------------------

Instances::Instances(Evaluator& evaluator, ModuleDefs& defs, graph::Module& module, const std::set<std::string, std::less<>>& selected)
    : evaluator_(evaluator), defs_(defs), module_(module), selected_(selected) {
  evaluator_.set_interfaces(this);
}

Instances::~Instances() { evaluator_.set_interfaces(nullptr); }

graph::Where Instances::where(source::Span span) const {
  if (!span.valid()) return {};
  const source::Position position = sources().position(span.file, span.begin);
  return {sources().display_name(span.file), static_cast<int>(position.line), static_cast<int>(position.column)};
}

bool Instances::bind_levels(Instance& instance) {
  const ModuleDef& def = instance.def;
  std::vector<std::vector<std::pair<std::string, Value>>> bound;
  bound.push_back(instance.recipe.arguments);
  Environment scope = evaluator_.module_scope(instance.recipe);
  for (std::size_t level = 1; level < def.levels.size(); ++level) {
    const ast::ModuleDecl& derived = *def.levels[level - 1].decl;
    const ModuleDef::Level& base = def.levels[level];
    std::vector<Argument> arguments;
    if (derived.base_args) arguments = evaluator_.arguments(*derived.base_args, scope);
    const bool failed = std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.value.is_error(); });
    Environment next(base.symbol->file);
    auto values = evaluator_.bind(base.decl->params, arguments, "the " + std::string(word(*base.symbol)) + " `" + base.symbol->name + "`",
                                  derived.base_args ? derived.base_args->span : derived.base->span, next);
    if (!values || failed) return false;
    bound.push_back(std::move(*values));
    scope = std::move(next);
  }
  // A derived text sees the parameters of its bases too. One name is one value in the whole module.
  bool ok = true;
  for (std::size_t level = 0; level < def.levels.size(); ++level) {
    Environment environment(def.levels[level].symbol->file);
    for (std::size_t i = def.levels.size(); i-- > level;) {
      for (std::size_t p = 0; p < bound[i].size(); ++p) {
        environment.define(bound[i][p].first, bound[i][p].second, def.levels[i].decl->params[p].name.span);
      }
    }
    instance.parameters_.push_back(std::move(environment));
    if (level == 0) continue;
    for (const auto& [name, value] : bound[level]) {
      for (std::size_t i = 0; i < level; ++i) {
        const auto same = std::find_if(bound[i].begin(), bound[i].end(), [&](const auto& b) { return b.first == name; });
        if (same == bound[i].end() || equal(same->second, value)) continue;
        const auto param = [&](std::size_t at) {
          for (const ast::Param& p : def.levels[at].decl->params) {
            if (p.name.text == name) return p.name.span;
          }
          return source::Span{};
        };
        sink()
            .error(code::duplicate_name, param(i),
                   "`" + name + "` is " + show(same->second) + " here and " + show(value) + " in the base `" +
                       def.levels[level].symbol->name + "`: one module, one value")
            .label(param(level), "the base's parameter")
            .help("give the parameter another name");
        ok = false;
      }
    }
  }
  return ok;
}

Instance* Instances::instance(const Recipe& recipe) {
  const std::string key = recipe_key(recipe);
  if (const auto it = instances_.find(key); it != instances_.end()) return it->second.get();
  instances_[key] = nullptr;
  const ModuleDef* def = defs_.get(*recipe.symbol);
  if (def == nullptr) return nullptr;
  auto made = std::make_unique<Instance>(*this, *def, recipe);
  made->slots.resize(def->members.size());
  const StaticScope guard(*this);
  if (!bind_levels(*made)) return nullptr;
  return (instances_[key] = std::move(made)).get();
}

ClassInfo* Instances::make(const Recipe& recipe, bool root) {
  const std::string key = recipe_key(recipe);
  if (const auto it = by_recipe_.find(key); it != by_recipe_.end()) {
    if (it->second.working) {
      std::string chain;
      for (const Recipe* at : path_) chain += at->symbol->name + " → ";
      sink()
          .error(code::module_too_large, recipe.span, "`" + recipe.symbol->name + "` contains itself")
          .label(recipe.symbol->span, "declared here")
          .note(chain + recipe.symbol->name)
          .help("a module is made of others; what repeats is a list of children: `layers: [Layer(c) for i in 0..n]`");
    }
    return it->second.info;
  }
  if (path_.size() >= static_cast<std::size_t>(max_depth)) {
    sink()
        .error(code::module_too_large, recipe.span, "modules are nested more than " + std::to_string(max_depth) + " deep")
        .label(recipe.symbol->span, "the innermost one is declared here")
        .help("a module that contains itself with other arguments needs a condition under which it ends");
    by_recipe_[key] = {};
    return nullptr;
  }
  if (classes_.size() >= max_classes) {
    sink()
        .error(code::module_too_large, path_.empty() ? recipe.span : path_.front()->span,
               "this model has more than " + grouped(std::uint64_t{max_classes}) + " modules that differ in more than their place")
        .help("a module that contains ever new ones of itself is the usual reason");
    return nullptr;
  }
  Instance* instance = this->instance(recipe);
  if (instance == nullptr) {
    by_recipe_[key] = {};
    return nullptr;
  }
  by_recipe_[key].working = true;
  path_.push_back(&instance->recipe);
  const bool ok = [&] {
    const StaticScope guard(*this);
    return realize(*instance);
  }();
  ClassInfo* info = nullptr;
  const std::string content = content_key(*instance, root);
  if (const auto it = by_content_.find(content); it != by_content_.end() && ok) {
    info = it->second;
  } else {
    auto fresh = std::make_unique<ClassInfo>();
    info = fresh.get();
    info->id = {static_cast<std::uint32_t>(module_.classes.size())};
    info->instance = instance;
    info->ok = ok;
    bool children = false;
    for (const Slot& slot : instance->slots) {
      for (const ClassInfo* element : slot.elements) {
        children = true;
        if (element == nullptr) continue;
        info->instances = std::min(info->instances + element->instances, max_instances + 1);
        info->depth = std::max(info->depth, element->depth + 1);
      }
    }
    graph::Class& made = instance->made;
    info->leaf = !root && !children && made.children.empty() && made.states.empty();
    info->weight_uses.resize(made.weights.size());
    info->state_uses.resize(made.states.size());
    made.leaf = info->leaf;
    made.definition = instance->def.name();
    made.name = unique_name(made.definition);
    made.where = where(instance->def.symbol->span);
    for (const auto& [name, value] : instance->recipe.arguments) {
      made.arguments += (made.arguments.empty() ? "" : ", ") + name + ": " + argument_text(value);
    }
    if (info->instances > max_instances) {
      sink().error(code::module_too_large, recipe.span,
                   "`" + recipe.symbol->name + "` holds more than " + grouped(max_instances) + " modules");
      info->ok = false;
    }
    module_.classes.push_back(std::move(made));
    classes_.push_back(std::move(fresh));
    by_content_.emplace(content, info);
    build_functions(*info);
  }
  path_.pop_back();
  by_recipe_[key] = {info, false};
  return info;
}

std::string Instances::unique_name(const std::string& definition) {
  std::string name = definition;
  int& last = last_number_[definition];
  while (!names_.insert(name).second) name = definition + "_" + std::to_string(last = std::max(last + 1, 2));
  return name;
}

// What the functions of a class can see, besides the texts of the definition; and what others can read of it.
std::string Instances::content_key(Instance& instance, bool root) {
  const ModuleDef& def = instance.def;
  std::string key = std::to_string(reinterpret_cast<std::uintptr_t>(&def)) + (root ? "!" : "");
  for (const std::string& name : def.mentioned) {
    Value value;
    if (const auto index = def.index_of(name)) {
      if (def.members[*index].kind != MemberKind::let) continue;
      value = instance.let(*index);
    } else if (def.parameter(name) != nullptr) {
      // All levels agree on the value of a name.
      value = *instance.parameters(0).lookup(name, {});
    } else {
      continue;
    }
    key += ' ' + name + '=';
    append_key(key, value);
  }
  for (std::size_t i = 0; i < def.members.size(); ++i) {
    const MemberDef& member = def.members[i];
    if (member.kind != MemberKind::let || def.mentioned.contains(member.name) || !selected_.contains(member.name)) continue;
    key += " ." + member.name + '=';
    append_key(key, instance.let(i));
  }
  const bool leaf = instance.made.children.empty() && instance.made.states.empty();
  for (std::size_t i = 0; i < def.members.size(); ++i) {
    const Slot& slot = instance.slots[i];
    const MemberKind kind = def.members[i].kind;
    if (kind == MemberKind::let || kind == MemberKind::function || kind == MemberKind::method) continue;
    key += ';' + std::to_string(i) + (slot.failed ? "!" : slot.present ? "+" : "-");
    if (slot.failed || !slot.present) continue;
    const graph::Class& made = instance.made;
    switch (kind) {
      case MemberKind::param: {
        const graph::WeightDecl& weight = made.weights[slot.index];
        for (const graph::DimId dim : weight.type.shape) key += ',' + std::to_string(dim.index);
        key += ' ' + std::string(name(weight.type.dtype)) + (weight.required_dtype ? std::string(name(*weight.required_dtype)) : "");
        if (weight.default_value) key += '=' + shortest(*weight.default_value);
        // A weight's formula is its class's, so leaves of equal sizes and other formulas are kept apart.
        if (leaf) {
          for (const AxisPattern& axis : slot.type.axes) key += ' ' + without_indices(formula_text(axis.formula));
        }
        break;
      }
      case MemberKind::constant:
        for (const AxisPattern& axis : slot.type.axes) key += ',' + std::to_string(axis.dim.index);
        break;
      case MemberKind::state: {
        const graph::StateDecl& state = made.states[slot.index];
        key += std::to_string(static_cast<int>(state.kind));
        for (const std::int64_t size : state.sizes) key += ',' + std::to_string(size);
        break;
      }
      case MemberKind::child:
        key += slot.list ? "[" : "";
        for (const ClassInfo* element : slot.elements) key += (element ? std::to_string(element->id.index) : "!") + ",";
        break;
      default: break;
    }
  }
  return key;
}

// ---- functions ------------------------------------------------------------------------------------------------------

const SignaturePattern* Instances::signature(ClassInfo& info, const MemberDef& method) {
  const auto it = info.signatures.find(&method);
  if (it != info.signatures.end()) return it->second ? &*it->second : nullptr;
  const StaticScope guard(*this);
  const auto& decl = ast::as<ast::MethodMember>(*method.item);
  auto pattern = signature_pattern(evaluator_, decl.signature, info.instance->environment(method.level), &info.instance->def, method.level,
                                   method.name);
  if (!pattern) info.ok = false;
  auto& stored = info.signatures[&method] = std::move(pattern);
  return stored ? &*stored : nullptr;
}

namespace {
bool is_taken(const graph::Class& owner, const std::string& function) { return graph::find_function(owner, function) != nullptr; }
}  // namespace

const MethodVariant* Instances::variant(ClassInfo& info, const MemberDef& method, const Ellipsis& ellipsis) {
  int same_name = 0;
  for (const auto& made : info.variants) {
    if (made->method != &method) continue;
    if (made->ellipsis == ellipsis) return made->ok ? made.get() : nullptr;
    ++same_name;
  }
  const SignaturePattern* signature = this->signature(info, method);
  if (signature == nullptr) return nullptr;
  MethodVariant* made = info.variants.emplace_back(std::make_unique<MethodVariant>()).get();
  made->method = &method;
  made->ellipsis = ellipsis;
  made->callee = method.name;
  for (int n = same_name + 1; n > 1 && (made->callee == method.name || is_taken(class_of(info), made->callee)); ++n)
    made->callee = method.name + "_" + std::to_string(n);
  if (auto function = FunctionBuilder::method(*this, info, method, *signature, ellipsis, made->callee, made->moves)) {
    for (const graph::ValueId id : function->body.results) made->results.push_back(function->values[id.index].type);
    made->ok = true;
    class_of(info).functions.push_back(std::move(*function));
    return made;
  }
  // Its callers go on with what it says of itself, so that their own mistakes are found too.
  info.ok = false;
  if (signature->results) {
    for (const auto& result : *signature->results) made->results.push_back(concrete(result.type, ellipsis));
    made->ok = true;
    return made;
  }
  return nullptr;
}

std::string Instances::common_name(const std::vector<std::pair<graph::ClassId, std::string>>& functions) {
  const std::string& first = functions.front().second;
  const auto alike = [&](const auto& f) { return f.second == first; };
  if (std::all_of(functions.begin(), functions.end(), alike)) return first;
  const ClassInfo& info = *classes_[functions.front().first.index];
  const auto variant = std::find_if(info.variants.begin(), info.variants.end(), [&](const auto& v) { return v->callee == first; });
  const std::string method = variant == info.variants.end() ? first : (*variant)->method->name;
  for (int n = 2;; ++n) {
    const std::string name = method + "_" + std::to_string(n);
    const auto taken = [&](const auto& f) { return is_taken(module_.of(f.first), name); };
    if (std::any_of(functions.begin(), functions.end(), taken)) continue;
    for (const auto& [id, callee] : functions) {
      graph::Class& owner = module_.classes[id.index];
      if (is_taken(owner, name)) continue;             // two kinds of element with one child
      const graph::Function* function = graph::find_function(owner, callee);
      if (function == nullptr) continue;               // it failed
      graph::Function copy = *function;
      copy.name = name;
      owner.functions.push_back(std::move(copy));
    }
    return name;
  }
}

void Instances::build_functions(ClassInfo& info) {
  const ModuleDef& def = info.instance->def;
  for (std::size_t i = 0; i < def.members.size(); ++i) {
    const Slot& slot = info.instance->slots[i];
    if (def.members[i].kind != MemberKind::constant || slot.failed || !slot.present) continue;
    auto function = FunctionBuilder::init(*this, info, i);
    if (!function) {
      info.ok = false;
      continue;
    }
    class_of(info).consts[slot.index].init = {static_cast<std::uint32_t>(class_of(info).functions.size())};
    class_of(info).functions.push_back(std::move(*function));
  }
  // A leaf's functions are expanded where they are called; one with `...` is made for what it is called with.
  const bool root = !info.leaf && path_.size() == 1;
  if (info.leaf) return;
  for (const MemberDef& member : def.members) {
    if (member.kind != MemberKind::method) continue;
    const SignaturePattern* pattern = signature(info, member);
    if (pattern == nullptr) continue;
    Ellipsis ellipsis;
    if (pattern->has_ellipsis()) {
      if (!root) continue;
      const auto tokens = module_.dims.find_axis("tokens");
      ellipsis = std::vector<graph::DimId>{module_.dims.of_axis(*tokens)};
    }
    variant(info, member, ellipsis);
  }
}

void Instances::finish() {
  for (const auto& info : classes_) {
    graph::Class& made = class_of(*info);
    for (std::size_t i = 0; i < made.weights.size(); ++i) {
      const WeightUse& use = info->weight_uses[i];
      made.weights[i].role = use.rows                    ? graph::WeightRole::table
                             : use.product && !use.other ? graph::WeightRole::matrix
                                                         : graph::WeightRole::vector;
    }
    for (std::size_t i = 0; i < made.states.size(); ++i) {
      const StateUse& use = info->state_uses[i];
      if (use.read && !use.unbounded) made.states[i].window = use.widest;
    }
  }
}

}  // namespace modelc::sema
