// Whether a module fits where an interface is asked: by the types of its functions.
#include "frontend/sema/instances.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;

bool Instances::fits(const Recipe& recipe, const Symbol& interface, std::span<const std::pair<std::string, Value>> arguments,
                     source::Span use) {
  std::string key = recipe_key(recipe) + '|' + std::to_string(reinterpret_cast<std::uintptr_t>(&interface));
  for (const auto& [name, value] : arguments) key += ',' + canonical(value);
  if (const auto it = fits_.find(key); it != fits_.end()) return it->second;
  bool& result = fits_[key];
  result = false;
  Instance* module = instance(recipe);
  if (module == nullptr) return false;
  const auto& decl = ast::as<ast::InterfaceDecl>(*interface.decl);
  const StaticScope guard(*this);
  Environment scope(interface.file);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const source::Span span = i < decl.params.size() ? decl.params[i].name.span : interface.span;
    scope.define(arguments[i].first, arguments[i].second, span);
  }
  const auto wrong = [&](const std::string& message, source::Span place, const std::string& note) {
    auto said =
        sink().error(code::interface_mismatch, use, "`" + recipe.symbol->name + "` does not fit `" + interface.name + "`: " + message);
    said.label(place, "the module's").label(interface.span, "the interface is declared here");
    if (!note.empty()) said.note(note);
    return false;
  };
  for (const ast::Signature& wanted : decl.signatures) {
    const MemberDef* method = module->def.find(wanted.name.text);
    if (method == nullptr || method->kind != MemberKind::method) {
      return wrong("it has no `" + wanted.name.text + "`", module->def.symbol->span, "asked: " + source_text(wanted.span));
    }
    const auto& given = ast::as<ast::MethodMember>(*method->item).signature;
    const auto asked = signature_pattern(evaluator_, wanted, scope, nullptr, 0, wanted.name.text);
    const auto has = signature_pattern(evaluator_, given, module->environment(method->level), &module->def, method->level, method->name);
    if (!asked || !has) return false;
    const std::string both = "asked: " + source_text(wanted.span) + "; has: " + source_text(given.span);
    const std::size_t count = asked->inputs.size();
    if (has->inputs.size() < count) {
      return wrong(
          "its `" + wanted.name.text + "` takes " + counted(has->inputs.size(), "argument") + ", and is given " + std::to_string(count),
          given.span, both);
    }
    for (std::size_t i = count; i < has->inputs.size(); ++i) {
      if (has->inputs[i].default_value) continue;
      return wrong("its `" + wanted.name.text + "` needs `" + has->inputs[i].name + "` too", has->inputs[i].span, both);
    }
    // The interface's own `...` are axes that nobody knows: one axis of its own stands for them.
    const Ellipsis any = std::vector<graph::DimId>{graph::DimTable::too_large};
    const auto stands_for = [&](const TypePattern& type) {
      graph::Type actual = concrete(type, any);
      return actual;
    };
    Ellipsis bound;
    for (std::size_t i = 0; i < count; ++i) {
      const auto problem = mismatch(has->inputs[i].type, stands_for(asked->inputs[i].type), module_.dims, bound);
      if (problem) { return wrong("of the argument for `" + has->inputs[i].name + "`, " + *problem, has->inputs[i].type.span, both); }
    }
    if (!asked->results || !has->results) continue;
    if (asked->results->size() != has->results->size()) {
      return wrong("it gives " + counted(has->results->size(), "result") + ", and " + std::to_string(asked->results->size()) + " are asked",
                   given.span, both);
    }
    for (std::size_t i = 0; i < asked->results->size(); ++i) {
      const graph::Type actual = concrete((*has->results)[i].type, bound);
      const graph::Type want = stands_for((*asked->results)[i].type);
      const auto problem = [&]() -> std::optional<std::string> {
        if (actual.shape != want.shape || actual.dtype != want.dtype) return "its result differs";
        if (want.index_bound && actual.index_bound != want.index_bound) return "the bound of its result differs";
        return std::nullopt;
      }();
      if (problem) return wrong(*problem, (*has->results)[i].type.span, both);
    }
  }
  return result = true;
}

}  // namespace modelc::sema
