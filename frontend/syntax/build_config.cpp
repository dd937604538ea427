// Files, axes, configurations, variants.
#include <cassert>
#include <utility>

#include "frontend/syntax/build.h"

namespace modelc::syntax {

std::unique_ptr<ast::File> Builder::file(P::FileContext& c) {
  auto f = std::make_unique<ast::File>();
  f->file = tokens_.file();
  f->span = {tokens_.file(), 0, static_cast<std::uint32_t>(tokens_.text().size())};
  f->language = number(*c.INT()->getSymbol());
  for (P::ImportsContext* i : c.imports()) {
    ast::Import import;
    import.span = span(*i);
    import.path = path(*i->path());
    if (i->ID() != nullptr) import.alias = name(*i->ID());
    f->imports.push_back(std::move(import));
  }
  for (P::DeclContext* d : c.decl()) f->decls.push_back(decl(*d));
  return f;
}

ast::ItemPtr Builder::decl(P::DeclContext& c) {
  ast::ItemPtr d;
  if (c.axisDecl() != nullptr) d = axis_decl(*c.axisDecl());
  if (c.configDecl() != nullptr) d = config_decl(*c.configDecl());
  if (c.variantDecl() != nullptr) d = variant_decl(*c.variantDecl());
  if (c.interfaceDecl() != nullptr) d = interface_decl(*c.interfaceDecl());
  if (c.moduleDecl() != nullptr) d = module_decl(*c.moduleDecl());
  if (c.fnDecl() != nullptr) d = function_decl(*c.fnDecl());
  if (c.opDecl() != nullptr) d = op_decl(*c.opDecl());
  if (c.encodingDecl() != nullptr) d = encoding_decl(*c.encodingDecl());
  if (c.testDecl() != nullptr) d = test_decl(*c.testDecl());
  assert(d != nullptr);
  d->doc = doc(c);
  return d;
}

ast::ItemPtr Builder::axis_decl(P::AxisDeclContext& c) {
  auto a = made<ast::AxisDecl>(span(c));
  a->name = name(*c.ID());
  a->range = range(*c.range());
  a->step = optional_expr(c.expr());
  return a;
}

ast::ItemPtr Builder::config_decl(P::ConfigDeclContext& c) {
  auto d = made<ast::ConfigDecl>(span(c));
  d->name = name(*c.ID(0));
  d->file = optional_string(c.STRING());
  if (c.base != nullptr) d->base = name(*c.base);
  for (P::ConfigItemContext* i : c.configItem()) d->items.push_back(config_item(*i));
  return d;
}

ast::ItemPtr Builder::variant_decl(P::VariantDeclContext& c) {
  auto d = made<ast::VariantDecl>(span(c));
  d->name = name(*c.ID());
  d->tag_keys = paths(c.path());
  for (P::VariantCaseContext* v : c.variantCase()) {
    ast::VariantCase one;
    one.span = span(*v);
    one.doc = doc(*v);
    for (Node* s : v->STRING()) one.tags.push_back(string(*s));
    for (P::ConfigItemContext* i : v->configItem()) one.items.push_back(config_item(*i));
    d->cases.push_back(std::move(one));
  }
  return d;
}

ast::ItemPtr Builder::config_item(P::ConfigItemContext& c) {
  ast::ItemPtr item;
  if (c.field() != nullptr) item = field(*c.field());
  if (c.let() != nullptr) item = let(*c.let());
  if (c.fnDecl() != nullptr) item = function_decl(*c.fnDecl());
  if (c.require() != nullptr) item = require(*c.require());
  if (P::RemoveContext* r = c.remove()) {
    auto i = made<ast::RemoveItem>(span(*r));
    i->name = name(*r->name());
    item = std::move(i);
  }
  if (P::RefuseContext* r = c.refuse()) {
    auto i = made<ast::RefuseItem>(span(*r));
    i->keys = keys(r->key());
    item = std::move(i);
  }
  if (P::IgnoreContext* r = c.ignore()) {
    auto i = made<ast::IgnoreItem>(span(*r));
    i->keys = keys(r->key());
    item = std::move(i);
  }
  assert(item != nullptr);
  item->doc = doc(c);
  return item;
}

ast::ItemPtr Builder::field(P::FieldContext& c) {
  auto f = made<ast::FieldItem>(span(c));
  f->override_ = word(c.over);
  for (P::NameContext* n : c.name()) f->names.push_back(name(*n));
  f->type = type(*c.type());
  if (c.range() != nullptr) f->range = range(*c.range());
  f->from = paths(c.path());
  f->default_value = optional_expr(c.expr());
  return f;
}

ast::ItemPtr Builder::let(P::LetContext& c) {
  auto l = made<ast::LetItem>(span(c));
  l->name = name(*c.name());
  l->value = expr(*c.expr());
  return l;
}

ast::ItemPtr Builder::require(P::RequireContext& c) {
  auto r = made<ast::RequireItem>(span(c));
  r->condition = expr(*c.expr());
  r->message = optional_string(c.STRING());
  return r;
}

std::vector<ast::KeyPattern> Builder::keys(const std::vector<P::KeyContext*>& list) {
  std::vector<ast::KeyPattern> out;
  for (P::KeyContext* k : list) {
    ast::KeyPattern key;
    key.span = span(*k);
    key.quoted = k->STRING() != nullptr;
    if (key.quoted) {
      key.string = string(*k->STRING());
    } else {
      key.path = path(*k->path());
    }
    out.push_back(std::move(key));
  }
  return out;
}

}  // namespace modelc::syntax
