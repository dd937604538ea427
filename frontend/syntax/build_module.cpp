// Interfaces, modules and their members, functions, operations, encodings, sections.
#include <cassert>
#include <utility>

#include "frontend/syntax/build.h"

namespace modelc::syntax {

using P = Builder::P;

std::vector<ast::Param> Builder::params(P::ParamsContext* c) {
  std::vector<ast::Param> out;
  if (c == nullptr) return out;
  for (P::ParamContext* p : c->param()) {
    ast::Param param;
    param.span = span(*p);
    param.name = name(*p->name());
    param.type = type(*p->type());
    param.default_value = optional_expr(p->expr());
    out.push_back(std::move(param));
  }
  return out;
}

ast::Signature Builder::signature(P::SignatureContext& c) {
  ast::Signature s;
  s.span = span(c);
  s.is_forward = c.name() == nullptr;
  s.name = s.is_forward ? name(*c.start) : name(*c.name());
  s.params = params(c.params());
  if (c.result() != nullptr) s.result = result(*c.result());
  return s;
}

std::vector<ast::ResultItem> Builder::result(P::ResultContext& c) {
  std::vector<ast::ResultItem> out;
  for (P::ResultItemContext* r : c.resultItem()) {
    ast::ResultItem item;
    item.span = span(*r);
    if (r->name() != nullptr) item.name = name(*r->name());
    item.type = type(*r->type());
    out.push_back(std::move(item));
  }
  return out;
}

ast::ItemPtr Builder::interface_decl(P::InterfaceDeclContext& c) {
  auto d = made<ast::InterfaceDecl>(span(c));
  d->name = name(*c.ID());
  d->params = params(c.params());
  for (P::SignatureContext* s : c.signature()) d->signatures.push_back(signature(*s));
  return d;
}

ast::ItemPtr Builder::module_decl(P::ModuleDeclContext& c) {
  auto d = made<ast::ModuleDecl>(span(c));
  d->is_model = c.kind->getType() == P::MODEL;
  d->name = name(*c.ID(0));
  d->has_params = c.params() != nullptr;
  d->params = params(c.params());
  if (c.base != nullptr) {
    d->base = name(*c.base);
    d->base_args = args(*c.args());
  }
  for (P::MemberContext* m : c.member()) d->members.push_back(member(*m));
  return d;
}

ast::ItemPtr Builder::function_decl(P::FnDeclContext& c) {
  auto f = made<ast::FunctionDecl>(span(c));
  f->name = name(*c.name());
  f->params = names(*c.names());
  f->value = optional_expr(c.expr());
  if (c.block() != nullptr) f->block = block(*c.block());
  return f;
}

std::optional<ast::At> Builder::at(P::AtContext* c) {
  if (c == nullptr) return std::nullopt;
  ast::At a;
  a.span = span(*c);
  a.self = c->self != nullptr;
  if (!a.self) a.path = tensor(*c->tensor());
  return a;
}

ast::ItemPtr Builder::member(P::MemberContext& c) {
  const std::optional<source::Span> over = word(c.over);
  ast::ItemPtr item;
  if (c.let() != nullptr) item = let(*c.let());
  if (c.fnDecl() != nullptr) item = function_decl(*c.fnDecl());
  if (c.require() != nullptr) item = require(*c.require());
  if (c.section() != nullptr) item = section(*c.section());
  if (P::ContextItemContext* x = c.contextItem()) {
    auto m = made<ast::ContextMember>(span(c));
    m->value = expr(*x->expr());
    item = std::move(m);
  }
  if (P::RemoveMemberContext* x = c.removeMember()) {
    auto m = made<ast::RemoveItem>(span(c));
    m->checkpoint = x->block_ != nullptr;
    m->name = name(*x->name());
    item = std::move(m);
  }
  if (P::ParamMemberContext* x = c.paramMember()) {
    auto m = made<ast::ParamMember>(span(c));
    m->override_ = over;
    m->name = name(*x->name());
    m->at = at(x->at());
    m->type = type(*x->type());
    m->default_value = optional_expr(x->default_);
    m->condition = optional_expr(x->cond);
    item = std::move(m);
  }
  if (P::ConstMemberContext* x = c.constMember()) {
    auto m = made<ast::ConstMember>(span(c));
    m->override_ = over;
    m->name = name(*x->name());
    m->type = type(*x->type());
    m->value = expr(*x->expr());
    item = std::move(m);
  }
  if (P::StateMemberContext* x = c.stateMember()) {
    auto m = made<ast::StateMember>(span(c));
    m->override_ = over;
    m->name = name(*x->name());
    m->value = expr(*x->value);
    m->condition = optional_expr(x->cond);
    item = std::move(m);
  }
  if (P::ChildContext* x = c.child()) {
    auto m = made<ast::ChildMember>(span(c));
    m->override_ = over;
    m->name = name(*x->name());
    m->at = at(x->at());
    m->value = expr(*x->value);
    m->condition = optional_expr(x->cond);
    item = std::move(m);
  }
  if (P::MethodContext* x = c.method()) {
    auto m = made<ast::MethodMember>(span(c));
    m->override_ = over;
    m->signature = signature(*x->signature());
    m->body = block(*x->block());
    item = std::move(m);
  }
  if (c.checkpoint() != nullptr) {
    item = checkpoint(*c.checkpoint());
    item->span = span(c);
    ast::as<ast::CheckpointMember>(*item).override_ = over;
  }
  assert(item != nullptr);
  item->doc = doc(c);
  return item;
}

// --- Statements -----------------------------------------------------------------------------------------------------

ast::Block Builder::block(P::BlockContext& c) {
  ast::Block b;
  b.span = span(c);
  for (P::StatementContext* s : c.statement()) b.statements.push_back(statement(*s));
  return b;
}

ast::StatementPtr Builder::statement(P::StatementContext& c) {
  if (auto* x = dynamic_cast<P::LetStatementContext*>(&c)) {
    auto s = made<ast::LetStatement>(span(c));
    for (P::NameContext* n : x->name()) s->names.push_back(name(*n));
    s->value = expr(*x->expr());
    return s;
  }
  if (auto* x = dynamic_cast<P::ForStatementContext*>(&c)) {
    auto s = made<ast::ForStatement>(span(c));
    s->variable = name(*x->name());
    s->source = expr(*x->expr());
    s->body = block(*x->block());
    return s;
  }
  if (auto* x = dynamic_cast<P::ReturnStatementContext*>(&c)) {
    auto s = made<ast::ReturnStatement>(span(c));
    s->values = exprs(x->expr());
    return s;
  }
  if (auto* x = dynamic_cast<P::AssignStatementContext*>(&c)) {
    auto s = made<ast::AssignStatement>(span(c));
    s->name = name(*x->name());
    s->value = expr(*x->expr());
    return s;
  }
  auto* x = dynamic_cast<P::CallStatementContext*>(&c);
  assert(x != nullptr);
  auto s = made<ast::CallStatement>(span(c));
  s->path = path(*x->path());
  s->args = args(*x->args());
  return s;
}

// --- Operations, encodings ------------------------------------------------------------------------------------------

ast::ItemPtr Builder::op_decl(P::OpDeclContext& c) {
  auto d = made<ast::OpDecl>(span(c));
  d->name = name(*c.ID());
  d->params = params(c.params());
  d->result = result(*c.result());
  d->reference = optional_expr(c.expr());
  if (c.block() != nullptr) d->reference_block = block(*c.block());
  for (P::KernelContext* k : c.kernel()) {
    ast::Kernel kernel;
    kernel.span = span(*k);
    kernel.backend = name(*k->backend);
    kernel.file = string(*k->STRING());
    kernel.local_size = optional_expr(k->localSize);
    kernel.dispatch = optional_expr(k->dispatch);
    for (P::NameContext* n : k->name()) kernel.required.push_back(name(*n));
    kernel.when = when(k->when());
    d->kernels.push_back(std::move(kernel));
  }
  return d;
}

ast::ItemPtr Builder::encoding_decl(P::EncodingDeclContext& c) {
  auto d = made<ast::EncodingDecl>(span(c));
  d->name = name(*c.ID());
  d->has_params = c.params() != nullptr;
  d->params = params(c.params());
  d->shape = shape(*c.shape());
  for (P::PartContext* p : c.part()) {
    ast::EncodingPart part;
    part.span = span(*p);
    part.doc = doc(*p);
    part.name = name(*p->name());
    part.at = string(*p->STRING());
    part.type = type(*p->type());
    d->parts.push_back(std::move(part));
  }
  d->value = expr(*c.expr());
  return d;
}

// --- Sections -------------------------------------------------------------------------------------------------------

ast::ItemPtr Builder::section(P::SectionContext& c) {
  if (auto* x = dynamic_cast<P::PolicyContext*>(&c)) {
    auto s = made<ast::PolicySection>(span(c));
    for (P::PolicyEntryContext* e : x->policyEntry()) { s->entries.push_back({tensor_list(e->tensor()), name(*e->ID()), span(*e)}); }
    return s;
  }
  if (auto* x = dynamic_cast<P::ShardContext*>(&c)) {
    auto s = made<ast::ShardSection>(span(c));
    for (P::ShardEntryContext* e : x->shardEntry()) s->entries.push_back({paths(e->path()), name(*e->ID()), span(*e)});
    return s;
  }
  if (auto* x = dynamic_cast<P::QuantizeContext*>(&c)) {
    auto s = made<ast::QuantizeSection>(span(c));
    for (P::QuantizeEntryContext* e : x->quantizeEntry()) {
      s->entries.push_back({tensor_list(e->tensor()), e->never != nullptr, name(*e->ID()), e->file_ != nullptr, span(*e)});
    }
    return s;
  }
  auto* x = dynamic_cast<P::PlaceContext*>(&c);
  assert(x != nullptr);
  auto s = made<ast::PlaceSection>(span(c));
  for (P::PlaceEntryContext* e : x->placeEntry()) {
    ast::PlaceSection::Entry entry;
    entry.span = span(*e);
    entry.target = tensor(*e->tensor());
    if (e->range() != nullptr) entry.range = range(*e->range());
    entry.device = name(*e->name());
    entry.number = number(*e->INT()->getSymbol());
    s->entries.push_back(std::move(entry));
  }
  return s;
}

}  // namespace modelc::syntax
