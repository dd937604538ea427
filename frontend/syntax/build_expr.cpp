// Words, literals, expressions, types.
#include <cassert>
#include <charconv>
#include <system_error>

#include "frontend/syntax/build.h"

namespace modelc::syntax {

using P = Builder::P;
using antlr4::Token;

source::Span Builder::span(const Token* first, const Token* last) const { return source::join(tokens_.span(*first), tokens_.span(*last)); }

source::Span Builder::span(const antlr4::ParserRuleContext& c) const {
  // A rule that matched nothing has a stop before its start; none of the constructs that ask here can.
  return span(c.start, c.stop);
}

std::string Builder::doc(const antlr4::ParserRuleContext& c) const {
  // The comment lines right before the first token; they stand in the hidden channel.
  const std::vector<Token*>& all = tokens_.all();
  std::size_t first = c.start->getTokenIndex();
  const std::size_t end = first;
  while (first > 0 && all[first - 1]->getType() == P::DOC) --first;
  std::string out;
  for (std::size_t i = first; i < end; ++i) {
    // A comment behind other text documents nothing.
    if (!tokens_.first_on_line(i)) continue;
    std::string_view line = tokens_.text(*all[i]).substr(3);
    if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    if (!out.empty()) out += "\n";
    out += line;
  }
  return out;
}

ast::Name Builder::name(const Token& id) const { return {text(id), span(id)}; }

ast::Name Builder::name(P::NameContext& c) const { return name(*c.start); }

std::vector<ast::Name> Builder::names(P::NamesContext& c) const {
  std::vector<ast::Name> out;
  for (P::NameContext* n : c.name()) out.push_back(name(*n));
  return out;
}

ast::Path Builder::path(P::PathContext& c) const {
  ast::Path p;
  p.span = span(c);
  for (P::NameContext* n : c.name()) p.parts.push_back(name(*n));
  return p;
}

std::vector<ast::Path> Builder::paths(const std::vector<P::PathContext*>& list) const {
  std::vector<ast::Path> out;
  for (P::PathContext* p : list) out.push_back(path(*p));
  return out;
}

std::optional<source::Span> Builder::word(const Token* t) const {
  return t == nullptr ? std::nullopt : std::optional<source::Span>(span(*t));
}

namespace {

// UTF-8 of a code point; false when it is none.
bool append_code_point(std::string& out, std::uint32_t c) {
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return false;
  auto push = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    push(c);
  } else if (c < 0x800) {
    push(0xC0 | c >> 6), push(0x80 | (c & 63));
  } else if (c < 0x10000) {
    push(0xE0 | c >> 12), push(0x80 | (c >> 6 & 63)), push(0x80 | (c & 63));
  } else {
    push(0xF0 | c >> 18), push(0x80 | (c >> 12 & 63)), push(0x80 | (c >> 6 & 63)), push(0x80 | (c & 63));
  }
  return true;
}

// The escape that begins at text[i] == '\\': appends what it means and returns its length, 0 when there is none such.
std::size_t unescape(std::string_view text, std::size_t i, std::string& out) {
  const char c = i + 1 < text.size() ? text[i + 1] : '\0';
  switch (c) {
    case '"':
    case '\\': out.push_back(c); return 2;
    case 'n': out.push_back('\n'); return 2;
    case 't': out.push_back('\t'); return 2;
    case 'r': out.push_back('\r'); return 2;
    case 'u': break;
    default: return 0;
  }
  const std::size_t close = text.find('}', i);
  if (i + 2 >= text.size() || text[i + 2] != '{' || close == std::string_view::npos) return 0;
  std::uint32_t value = 0;
  const char* first = text.data() + i + 3;
  const char* last = text.data() + close;
  const auto [end, ec] = std::from_chars(first, last, value, 16);
  if (ec != std::errc() || end != last || value == 0 || !append_code_point(out, value)) return 0;
  return close - i + 1;
}

}  // namespace

ast::String Builder::string(Node& s) {
  const Token& token = *s.getSymbol();
  ast::String out{{}, span(token)};
  const std::string_view inner = tokens_.text(token).substr(1, tokens_.text(token).size() - 2);
  for (std::size_t i = 0; i < inner.size();) {
    if (inner[i] != '\\') {
      out.value.push_back(inner[i++]);
      continue;
    }
    const std::size_t length = unescape(inner, i, out.value);
    if (length == 0) {
      const auto at = out.span.begin + 1 + static_cast<std::uint32_t>(i);
      const source::Span escape{out.span.file, at, at + 2};
      sink_.error(diag::code::bad_escape, escape, "no such escape in a string")
          .help("known are \\\" \\\\ \\n \\t \\r and \\u{hexadecimal code point}; a backslash is written `\\\\`");
    }
    i += length == 0 ? 2 : length;
  }
  return out;
}

std::optional<ast::String> Builder::optional_string(Node* s) {
  return s == nullptr ? std::nullopt : std::optional<ast::String>(string(*s));
}

ast::Literal Builder::number(const Token& t) {
  ast::Literal l;
  l.span = span(t);
  l.text = text(t);
  if (t.getType() == P::INT) {
    l.kind = ast::LiteralKind::integer;
    std::string digits;
    for (const char c : l.text) {
      if (c != '_') digits.push_back(c);
    }
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), l.integer);
    if (ec != std::errc() || end != digits.data() + digits.size()) {
      sink_.error(diag::code::bad_number, l.span, "the integer " + l.text + " is too large")
          .note("integers have 64 bits: the largest is 9223372036854775807");
    }
    return l;
  }
  l.kind = ast::LiteralKind::floating;
  const auto [end, ec] = std::from_chars(l.text.data(), l.text.data() + l.text.size(), l.floating);
  if (ec != std::errc() || end != l.text.data() + l.text.size()) {
    sink_.error(diag::code::bad_number, l.span, "the number " + l.text + " cannot be held by a float")
        .note("floats are IEEE doubles: about 2.2e-308 to 1.8e308");
  }
  return l;
}

ast::Literal Builder::literal(P::LiteralContext& c) {
  const Token& t = *c.start;
  ast::Literal l;
  l.span = span(t);
  switch (t.getType()) {
    case P::STRING:
      l.kind = ast::LiteralKind::string;
      l.text = string(*c.STRING()).value;
      return l;
    case P::INT:
    case P::FLOAT: return number(t);
    case P::TRUE:
    case P::FALSE:
      l.kind = ast::LiteralKind::boolean;
      l.boolean = t.getType() == P::TRUE;
      l.text = text(t);
      return l;
    default:
      l.kind = ast::LiteralKind::none;
      l.text = text(t);
      return l;
  }
}

// --- Expressions ----------------------------------------------------------------------------------------------------

std::vector<ast::ExprPtr> Builder::exprs(const std::vector<P::ExprContext*>& list) {
  std::vector<ast::ExprPtr> out;
  out.reserve(list.size());
  for (P::ExprContext* e : list) out.push_back(expr(*e));
  return out;
}

namespace {

std::optional<ast::BinaryOp> binary_op(std::size_t type) {
  using Op = ast::BinaryOp;
  switch (type) {
    case P::CARET: return Op::pow;
    case P::STAR: return Op::mul;
    case P::SLASH: return Op::div;
    case P::PERCENT: return Op::mod;
    case P::PLUS: return Op::add;
    case P::MINUS: return Op::sub;
    case P::EQUAL: return Op::eq;
    case P::UNEQUAL: return Op::ne;
    case P::LESS: return Op::lt;
    case P::LESS_EQUAL: return Op::le;
    case P::GREATER: return Op::gt;
    case P::GREATER_EQUAL: return Op::ge;
    case P::IN: return Op::in;
    case P::AND: return Op::and_;
    case P::OR: return Op::or_;
    case P::COALESCE: return Op::coalesce;
    default: return std::nullopt;
  }
}

}  // namespace

ast::ExprPtr Builder::binary(P::BinaryContext& c) {
  auto e = made<ast::BinaryExpr>(span(c));
  const std::optional<ast::BinaryOp> op = binary_op(c.op->getType());
  assert(op);
  e->op = *op;
  e->op_span = span(*c.op);
  e->left = expr(*c.expr(0));
  e->right = expr(*c.expr(1));
  return e;
}

ast::ExprPtr Builder::expr(P::ExprContext& c) {
  ends_.push_back(span(*c.stop).end);
  if (auto* x = dynamic_cast<P::PostfixExprContext*>(&c)) return postfix(*x->postfix());
  if (auto* x = dynamic_cast<P::BinaryContext*>(&c)) return binary(*x);
  if (auto* x = dynamic_cast<P::NegateContext*>(&c)) {
    auto e = made<ast::UnaryExpr>(span(c));
    e->op = ast::UnaryOp::negate;
    e->operand = expr(*x->expr());
    return e;
  }
  if (auto* x = dynamic_cast<P::NotContext*>(&c)) {
    auto e = made<ast::UnaryExpr>(span(c));
    e->op = ast::UnaryOp::not_;
    e->operand = expr(*x->expr());
    return e;
  }
  if (auto* x = dynamic_cast<P::CastContext*>(&c)) {
    auto e = made<ast::CastExpr>(span(c));
    e->operand = expr(*x->expr());
    e->type = cast_type(*x->castType());
    return e;
  }
  if (auto* x = dynamic_cast<P::IsContext*>(&c)) {
    auto e = made<ast::IsExpr>(span(c));
    e->operand = expr(*x->expr());
    e->negated = x->negated != nullptr;
    e->literal = literal(*x->literal());
    return e;
  }
  if (auto* x = dynamic_cast<P::ConditionalContext*>(&c)) {
    auto e = made<ast::ConditionalExpr>(span(c));
    e->value = expr(*x->expr(0));
    e->condition = expr(*x->expr(1));
    e->otherwise = expr(*x->expr(2));
    return e;
  }
  auto* x = dynamic_cast<P::FunctionContext*>(&c);
  assert(x != nullptr);
  auto e = made<ast::FunctionExpr>(span(c));
  e->params = names(*x->names());
  e->body = expr(*x->expr());
  return e;
}

ast::ExprPtr Builder::postfix(P::PostfixContext& c) {
  ast::ExprPtr e = primary(*c.primary());
  for (P::SuffixContext* s : c.suffix()) {
    const source::Span whole = span(c.start, s->stop);
    if (s->name() != nullptr) {
      auto member = made<ast::MemberExpr>(whole);
      member->object = std::move(e);
      member->name = name(*s->name());
      e = std::move(member);
    } else if (s->args() != nullptr) {
      auto call = made<ast::CallExpr>(whole);
      call->callee = std::move(e);
      call->args = args(*s->args());
      e = std::move(call);
    } else {
      auto index = made<ast::IndexExpr>(whole);
      index->object = std::move(e);
      for (P::SliceContext* i : s->slice()) index->slices.push_back(slice(*i));
      e = std::move(index);
    }
  }
  return e;
}

ast::ExprPtr Builder::primary(P::PrimaryContext& c) {
  if (auto* x = dynamic_cast<P::LiteralPrimaryContext*>(&c)) {
    auto e = made<ast::LiteralExpr>(span(c));
    e->value = literal(*x->literal());
    return e;
  }
  if (auto* x = dynamic_cast<P::NamePrimaryContext*>(&c)) {
    auto e = made<ast::NameExpr>(span(c));
    e->name = name(*x->name());
    return e;
  }
  if (auto* x = dynamic_cast<P::ParenPrimaryContext*>(&c)) {
    std::vector<P::ExprContext*> items = x->expr();
    if (items.size() == 1) {
      ast::ExprPtr e = expr(*items.front());
      e->parens = true;
      return e;
    }
    auto e = made<ast::TupleExpr>(span(c));
    e->items = exprs(items);
    return e;
  }
  if (auto* x = dynamic_cast<P::MatchPrimaryContext*>(&c)) return match(*x);
  auto* x = dynamic_cast<P::ListPrimaryContext*>(&c);
  assert(x != nullptr);
  return list(*x);
}

ast::ExprPtr Builder::list(P::ListPrimaryContext& c) {
  P::ForClauseContext* f = c.forClause();
  if (f == nullptr) {
    auto e = made<ast::ListExpr>(span(c));
    e->items = exprs(c.expr());
    return e;
  }
  auto e = made<ast::ComprehensionExpr>(span(c));
  e->element = expr(*c.expr(0));
  e->variable = name(*f->name());
  ast::ExprPtr low = expr(*f->low);
  if (f->dots != nullptr) {
    ast::Range r;
    r.span = span(f->low->start, f->high != nullptr ? f->high->stop : f->dots);
    r.low = std::move(low);
    r.high = optional_expr(f->high);
    e->range = std::move(r);
  } else {
    e->source = std::move(low);
  }
  e->condition = optional_expr(f->cond);
  return e;
}

ast::ExprPtr Builder::match(P::MatchPrimaryContext& c) {
  auto e = made<ast::MatchExpr>(span(c));
  e->subject = expr(*c.expr());
  for (P::ArmContext* a : c.arm()) {
    ast::Arm arm;
    arm.span = span(*a);
    arm.wildcard = a->wildcard != nullptr;
    for (P::LiteralContext* l : a->literal()) arm.literals.push_back(literal(*l));
    if (a->name() != nullptr) arm.binding = name(*a->name());
    arm.value = expr(*a->expr());
    e->arms.push_back(std::move(arm));
  }
  return e;
}

ast::Args Builder::args(P::ArgsContext& c) {
  ast::Args out;
  out.span = span(c);
  for (P::ArgContext* a : c.arg()) {
    ast::Arg arg;
    arg.span = span(*a);
    if (a->name() != nullptr) arg.name = name(*a->name());
    arg.value = expr(*a->expr());
    out.items.push_back(std::move(arg));
  }
  return out;
}

ast::Slice Builder::slice(P::SliceContext& c) {
  ast::Slice s;
  s.span = span(c);
  if (c.ellipsis != nullptr) {
    s.kind = ast::SliceKind::ellipsis;
  } else if (c.whole != nullptr) {
    s.kind = ast::SliceKind::whole;
  } else {
    s.kind = c.dots != nullptr ? ast::SliceKind::range : ast::SliceKind::index;
    s.low = expr(*c.low);
    s.high = optional_expr(c.high);
    s.step = optional_expr(c.step);
  }
  return s;
}

ast::Range Builder::range(P::RangeContext& c) {
  ast::Range r;
  r.span = span(c);
  r.low = expr(*c.low);
  r.high = optional_expr(c.high);
  return r;
}

// --- Types ----------------------------------------------------------------------------------------------------------

ast::Shape Builder::shape(P::ShapeContext& c) {
  ast::Shape s;
  s.span = span(c);
  for (P::AxisContext* a : c.axis()) {
    ast::Axis axis;
    axis.span = span(*a);
    axis.ellipsis = a->ellipsis != nullptr;
    axis.size = optional_expr(a->expr());
    s.axes.push_back(std::move(axis));
  }
  return s;
}

std::optional<ast::Shape> Builder::optional_shape(P::ShapeContext* c) {
  return c == nullptr ? std::nullopt : std::optional<ast::Shape>(shape(*c));
}

ast::CastType Builder::cast_type(P::CastTypeContext& c) {
  ast::CastType t;
  t.span = span(c);
  t.is_index = c.start->getType() == P::INDEX;
  t.bound = optional_expr(c.expr());
  if (c.ID() != nullptr) t.dtype = name(*c.ID());
  t.shape = optional_shape(c.shape());
  return t;
}

ast::TypePtr Builder::type(P::TypeContext& c) {
  ast::TypePtr t = simple_type(*c.simpleType());
  t->span = span(c);
  t->optional = c.optional != nullptr;
  return t;
}

ast::TypePtr Builder::simple_type(P::SimpleTypeContext& c) {
  if (auto* x = dynamic_cast<P::ListTypeContext*>(&c)) {
    auto t = made<ast::ListType>(span(c));
    t->element = type(*x->type());
    t->length = optional_expr(x->expr());
    return t;
  }
  if (auto* x = dynamic_cast<P::MapTypeContext*>(&c)) {
    auto t = made<ast::MapType>(span(c));
    t->element = type(*x->type());
    return t;
  }
  if (auto* x = dynamic_cast<P::IndexTypeContext*>(&c)) {
    auto t = made<ast::IndexType>(span(c));
    t->bound = optional_expr(x->expr());
    t->shape = shape(*x->shape());
    return t;
  }
  if (dynamic_cast<P::FunctionTypeContext*>(&c) != nullptr) return made<ast::FunctionType>(span(c));
  if (auto* x = dynamic_cast<P::NamedTypeContext*>(&c)) {
    auto t = made<ast::NamedType>(span(c));
    t->path = path(*x->path());
    if (x->args() != nullptr) t->args = args(*x->args());
    t->shape = optional_shape(x->shape());
    return t;
  }
  if (auto* x = dynamic_cast<P::TensorTypeContext*>(&c)) {
    auto t = made<ast::TensorType>(span(c));
    t->shape = shape(*x->shape());
    return t;
  }
  auto* x = dynamic_cast<P::LiteralTypeContext*>(&c);
  assert(x != nullptr);
  auto t = made<ast::LiteralType>(span(c));
  for (P::LiteralContext* l : x->literal()) t->literals.push_back(literal(*l));
  return t;
}

}  // namespace modelc::syntax
