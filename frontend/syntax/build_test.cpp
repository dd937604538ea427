// Tests.
#include <cassert>
#include <utility>

#include "frontend/syntax/build.h"

namespace modelc::syntax {

using P = Builder::P;

ast::ItemPtr Builder::test_decl(P::TestDeclContext& c) {
  auto d = made<ast::TestDecl>(span(c));
  d->name = string(*c.STRING());
  for (P::TestItemContext* i : c.testItem()) d->items.push_back(test_item(*i));
  return d;
}

ast::TestItemPtr Builder::test_item(P::TestItemContext& c) {
  if (auto* x = dynamic_cast<P::OpTestContext*>(&c)) {
    auto t = made<ast::OpTestItem>(span(c));
    t->name = name(*x->name());
    return t;
  }
  if (auto* x = dynamic_cast<P::ConfigTestContext*>(&c)) {
    auto t = made<ast::ConfigTestItem>(span(c));
    t->file = optional_string(x->STRING());
    if (x->object() != nullptr) t->values = object(*x->object());
    return t;
  }
  if (auto* x = dynamic_cast<P::CheckpointTestContext*>(&c)) {
    auto t = made<ast::CheckpointTestItem>(span(c));
    t->file = optional_string(x->STRING());
    if (x->INT() != nullptr) t->seed = number(*x->INT()->getSymbol());
    return t;
  }
  if (auto* x = dynamic_cast<P::InputTestContext*>(&c)) {
    auto t = made<ast::InputTestItem>(span(c));
    t->name = name(*x->name());
    t->value = expr(*x->expr());
    return t;
  }
  if (auto* x = dynamic_cast<P::ExpectTestContext*>(&c)) {
    auto t = made<ast::ExpectTestItem>(span(c));
    t->file = string(*x->STRING());
    t->within = expr(*x->expr());
    return t;
  }
  if (auto* x = dynamic_cast<P::ErrorTestContext*>(&c)) {
    auto t = made<ast::ErrorTestItem>(span(c));
    t->code = name(*x->name());
    t->text = optional_string(x->STRING());
    return t;
  }
  auto* x = dynamic_cast<P::SameTestContext*>(&c);
  assert(x != nullptr);
  auto t = made<ast::SameTestItem>(span(c));
  for (P::RunContext* r : x->run()) {
    std::vector<ast::Call> calls;
    for (P::CallContext* one : r->call()) calls.push_back(call(*one));
    t->runs.push_back(std::move(calls));
  }
  t->within = expr(*x->expr());
  return t;
}

ast::Object Builder::object(P::ObjectContext& c) {
  ast::Object out;
  out.span = span(c);
  for (P::EntryContext* e : c.entry()) {
    ast::Object::Entry entry;
    entry.span = span(*e);
    entry.key = name(*e->name());
    if (e->object() != nullptr) entry.object = std::make_unique<ast::Object>(object(*e->object()));
    entry.value = optional_expr(e->expr());
    out.entries.push_back(std::move(entry));
  }
  return out;
}

}  // namespace modelc::syntax
