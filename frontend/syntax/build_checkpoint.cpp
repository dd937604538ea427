// Checkpoint blocks: rules and patterns of tensor names.
#include <cassert>
#include <utility>

#include "frontend/syntax/build.h"

namespace modelc::syntax {

using P = Builder::P;

namespace {

std::string written(const ast::Seg& seg) {
  switch (seg.kind) {
    case ast::SegKind::star: return "*";
    case ast::SegKind::double_star: return "**";
    case ast::SegKind::index: return "{" + seg.text + "}";
    case ast::SegKind::rest: return "{" + seg.text + "*}";
    default: return seg.text;
  }
}

}  // namespace

ast::ItemPtr Builder::checkpoint(P::CheckpointContext& c) {
  auto m = made<ast::CheckpointMember>(span(c));
  m->format = name(*c.name());
  m->architecture = optional_string(c.STRING());
  m->rules = rules(c.rule_());
  return m;
}

std::vector<ast::RulePtr> Builder::rules(const std::vector<P::Rule_Context*>& list) {
  std::vector<ast::RulePtr> out;
  out.reserve(list.size());
  for (P::Rule_Context* r : list) out.push_back(rule(*r));
  return out;
}

ast::RulePtr Builder::rule(P::Rule_Context& c) {
  if (auto* x = dynamic_cast<P::MapRuleContext*>(&c)) {
    auto r = made<ast::MapRule>(span(c));
    r->file = tensors(*x->file_);
    r->model = tensors(*x->model);
    r->via = via(x->via());
    r->when = when(x->when());
    return r;
  }
  if (auto* x = dynamic_cast<P::ViaRuleContext*>(&c)) {
    auto r = made<ast::ViaRule>(span(c));
    r->tensor = tensor(*x->tensor());
    r->via = via(x->via());
    r->when = when(x->when());
    return r;
  }
  if (auto* x = dynamic_cast<P::AliasRuleContext*>(&c)) {
    auto r = made<ast::AliasRule>(span(c));
    r->alias = tensor(*x->alias);
    r->target = tensor(*x->target);
    r->when = when(x->when());
    return r;
  }
  if (auto* x = dynamic_cast<P::IgnoreRuleContext*>(&c)) {
    auto r = made<ast::IgnoreRule>(span(c));
    r->tensors = tensor_list(x->tensor());
    r->when = when(x->when());
    return r;
  }
  if (auto* x = dynamic_cast<P::EncodeRuleContext*>(&c)) {
    auto r = made<ast::EncodeRule>(span(c));
    r->tensor = tensor(*x->tensor());
    r->encoding = expr(*x->expr());
    r->when = when(x->when());
    return r;
  }
  if (auto* x = dynamic_cast<P::OneOfRuleContext*>(&c)) {
    auto r = made<ast::OneOfRule>(span(c));
    for (P::AlternativeContext* a : x->alternative()) { r->alternatives.push_back({name(*a->name()), rules(a->rule_()), span(*a)}); }
    return r;
  }
  if (auto* x = dynamic_cast<P::ForRuleContext*>(&c)) {
    auto r = made<ast::ForRule>(span(c));
    r->module = name(*x->ID());
    r->rules = rules(x->rule_());
    return r;
  }
  auto* x = dynamic_cast<P::ConfigRuleContext*>(&c);
  assert(x != nullptr);
  return config_rule(*x);
}

ast::RulePtr Builder::config_rule(P::ConfigRuleContext& c) {
  auto r = made<ast::ConfigRule>(span(c));
  for (P::ConfigEntryContext* e : c.configEntry()) {
    ast::ConfigRule::Entry entry;
    entry.span = span(*e);
    if (e->expr() == nullptr) {
      entry.ignored = paths(e->path());
    } else {
      entry.key = path(*e->path(0));
      entry.value = expr(*e->expr());
      entry.when = when(e->when());
    }
    r->entries.push_back(std::move(entry));
  }
  return r;
}

std::vector<ast::Call> Builder::via(P::ViaContext* c) {
  std::vector<ast::Call> out;
  if (c == nullptr) return out;
  for (P::CallContext* one : c->call()) out.push_back(call(*one));
  return out;
}

ast::ExprPtr Builder::when(P::WhenContext* c) { return c == nullptr ? nullptr : expr(*c->expr()); }

ast::Call Builder::call(P::CallContext& c) {
  ast::Call out;
  out.span = span(c);
  out.name = name(*c.name());
  if (c.args() != nullptr) out.args = args(*c.args());
  return out;
}

ast::Tensors Builder::tensors(P::TensorsContext& c) {
  ast::Tensors out;
  out.span = span(c);
  out.items = tensor_list(c.tensor());
  out.bracketed = c.start->getType() == P::LBRACK;
  return out;
}

std::vector<ast::Tensor> Builder::tensor_list(const std::vector<P::TensorContext*>& list) {
  std::vector<ast::Tensor> out;
  for (P::TensorContext* t : list) out.push_back(tensor(*t));
  return out;
}

ast::Tensor Builder::tensor(P::TensorContext& c) {
  ast::Tensor out;
  out.span = span(c);
  if (c.STRING() != nullptr) {
    out.quoted = true;
    out.text = string(*c.STRING()).value;
    return out;
  }
  for (P::SegContext* s : c.seg()) segs(*s, out.segs);
  for (const ast::Seg& s : out.segs) out.text += (out.text.empty() ? "" : ".") + written(s);
  return out;
}

void Builder::segs(P::SegContext& c, std::vector<ast::Seg>& out) {
  const antlr4::Token& t = *c.start;
  switch (t.getType()) {
    case P::STAR: out.push_back({ast::SegKind::star, {}, span(t)}); return;
    case P::STARS: out.push_back({ast::SegKind::double_star, {}, span(t)}); return;
    case P::INT: out.push_back({ast::SegKind::integer, text(t), span(t)}); break;
    case P::LBRACE: out.push_back({c.rest != nullptr ? ast::SegKind::rest : ast::SegKind::index, name(*c.name()).text, span(c)}); return;
    case P::FLOAT: {
      // `0.1` within `a.0.1.b` reads as one number: two components.
      const std::string both = text(t);
      const source::Span at = span(t);
      const auto dot = static_cast<std::uint32_t>(both.find('.'));
      if (both.find_first_not_of("0123456789.") != std::string::npos) {
        sink_.error(diag::code::unexpected_token, at, "`" + both + "` in a pattern reads as a number")
            .help("write the whole pattern in quotes");
        return;
      }
      out.push_back({ast::SegKind::integer, both.substr(0, dot), {at.file, at.begin, at.begin + dot}});
      out.push_back({ast::SegKind::integer, both.substr(dot + 1), {at.file, at.begin + dot + 1, at.end}});
      return;
    }
    default: out.push_back({ast::SegKind::name, text(t), span(t)}); return;
  }
  if (out.back().text.find('_') != std::string::npos) {
    sink_.error(diag::code::unexpected_token, span(t), "`" + text(t) + "` in a pattern reads as a number")
        .help("write the whole pattern in quotes");
  }
}

}  // namespace modelc::syntax
