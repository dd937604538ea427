// Words, literals, expressions, types; and the breaking of long lines.
#include <algorithm>
#include <charconv>
#include <string_view>

#include "frontend/syntax/print.h"
#include "frontend/syntax/printer.h"

namespace modelc::syntax {

namespace {

constexpr std::size_t indent_step = 4;
constexpr std::size_t continuation = 8;
constexpr std::size_t widest = 120;

// How tightly an expression binds: the alternatives of `expr` in the grammar, the tightest highest.
enum Level { function = 1, conditional, coalesce, or_, and_, not_, is, comparison, sum, product, cast, negate, power, atom };

Level level(ast::BinaryOp op) {
  using Op = ast::BinaryOp;
  switch (op) {
    case Op::pow: return power;
    case Op::mul:
    case Op::div:
    case Op::mod: return product;
    case Op::add:
    case Op::sub: return sum;
    case Op::and_: return and_;
    case Op::or_: return or_;
    case Op::coalesce: return coalesce;
    default: return comparison;
  }
}

Level level(const ast::Expr& e) {
  switch (e.kind) {
    case ast::ExprKind::unary: return ast::as<ast::UnaryExpr>(e).op == ast::UnaryOp::negate ? negate : not_;
    case ast::ExprKind::binary: return level(ast::as<ast::BinaryExpr>(e).op);
    case ast::ExprKind::cast: return cast;
    case ast::ExprKind::is: return is;
    case ast::ExprKind::conditional: return conditional;
    case ast::ExprKind::function: return function;
    default: return atom;
  }
}

bool is_negation(const ast::Expr& e) {
  const auto* unary = ast::try_as<ast::UnaryExpr>(e);
  return unary != nullptr && unary->op == ast::UnaryOp::negate;
}

std::string joined(const std::vector<ast::Name>& names) {
  std::string out;
  for (const ast::Name& n : names) out += (out.empty() ? "" : ", ") + n.text;
  return out;
}

const std::string comma = std::string(",") + Printer::soft;

// Where to break a text that is wider than `width`: in the least nested brackets, there as late as possible, but not in
// the first third; beyond the width when there is no place before it.
std::size_t best_cut(std::string_view text, std::size_t width) {
  std::size_t best = std::string_view::npos, best_depth = 0, depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      depth -= depth > 0;
    } else if (c == Printer::soft) {
      if (i > width) return best == std::string_view::npos ? i : best;
      const bool early = i < width / 3;
      if (best == std::string_view::npos || (!early && (depth <= best_depth || best < width / 3))) {
        best = i;
        best_depth = depth;
      }
    }
  }
  return best;
}

}  // namespace

std::string quote(const std::string& text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u{";
      if (byte >= 16) out.push_back(digits[byte >> 4]);
      out.push_back(digits[byte & 15]);
      out += "}";
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

std::string print(const ast::Literal& l) {
  switch (l.kind) {
    case ast::LiteralKind::string: return quote(l.text);
    case ast::LiteralKind::boolean: return l.boolean ? "true" : "false";
    case ast::LiteralKind::none: return "none";
    case ast::LiteralKind::integer: return l.text.empty() ? std::to_string(l.integer) : l.text;
    case ast::LiteralKind::floating: break;
  }
  if (!l.text.empty()) return l.text;
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, l.floating).ptr;
  std::string text(buffer, end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

// --- Lines ----------------------------------------------------------------------------------------------------------

std::string Printer::one_line(std::string flat) {
  for (char& c : flat) {
    if (c == soft) c = ' ';
  }
  return flat;
}

std::string Printer::take() { return std::move(out_); }

void Printer::line(const std::string& flat) {
  // Each piece between '\n' is broken by itself: at the last soft blank before the edge, as often as it takes.
  std::size_t begin = 0;
  bool first_piece = true;
  while (begin <= flat.size()) {
    const std::size_t end = std::min(flat.find('\n', begin), flat.size());
    std::string_view piece = std::string_view(flat).substr(begin, end - begin);
    std::size_t indent = first_piece ? indent_ : 0;
    if (!first_piece) {
      // Such a piece brings its own indentation.
      while (indent < piece.size() && piece[indent] == ' ') ++indent;
      piece.remove_prefix(indent);
    }
    const std::size_t own = indent;
    while (true) {
      out_.append(indent, ' ');
      std::size_t cut = std::string_view::npos;
      if (indent + piece.size() > widest) { cut = best_cut(piece, widest - std::min(indent, widest)); }
      out_ += one_line(std::string(piece.substr(0, cut)));
      out_ += "\n";
      if (cut == std::string_view::npos) break;
      piece.remove_prefix(cut + 1);
      indent = own + continuation;
    }
    first_piece = false;
    begin = end + 1;
  }
}

void Printer::open(const std::string& flat) {
  line(flat + " {");
  indent_ += indent_step;
}

void Printer::close() {
  indent_ -= indent_step;
  line("}");
}

void Printer::doc(const std::string& text) {
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    // Not through `line`: a comment is not broken.
    out_.append(indent_, ' ').append(one.empty() ? "///" : "/// " + one).append("\n");
    begin = end + 1;
  }
}

// --- Expressions ----------------------------------------------------------------------------------------------------

// An operand that must bind at least as tightly as `least`. With `prefix_free` a negation needs no parentheses: it
// stands to the right of its operator, where nothing else can be meant.
std::string Printer::operand(const ast::Expr& e, int least, bool prefix_free) {
  const bool needed = level(e) < least && !(prefix_free && is_negation(e)) && !e.parens;
  const std::string text = expr(e);
  return needed ? "(" + text + ")" : text;
}

std::string Printer::exprs(const std::vector<ast::ExprPtr>& list) {
  std::string out;
  for (const ast::ExprPtr& e : list) out += (out.empty() ? "" : comma) + expr(*e);
  return out;
}

std::string Printer::expr(const ast::Expr& e) { return e.parens ? "(" + bare(e) + ")" : bare(e); }

std::string Printer::bare(const ast::Expr& e) {
  switch (e.kind) {
    case ast::ExprKind::literal: return print(ast::as<ast::LiteralExpr>(e).value);
    case ast::ExprKind::name: return ast::as<ast::NameExpr>(e).name.text;
    case ast::ExprKind::tuple: return "(" + exprs(ast::as<ast::TupleExpr>(e).items) + ")";
    case ast::ExprKind::list: return "[" + exprs(ast::as<ast::ListExpr>(e).items) + "]";
    case ast::ExprKind::unary: {
      const auto& u = ast::as<ast::UnaryExpr>(e);
      return u.op == ast::UnaryOp::negate ? "-" + operand(*u.operand, negate) : "not " + operand(*u.operand, not_);
    }
    case ast::ExprKind::binary: {
      const auto& b = ast::as<ast::BinaryExpr>(e);
      const int own = level(b.op);
      const bool right = b.op == ast::BinaryOp::pow;  // a ^ b ^ c is a ^ (b ^ c)
      const bool breaks = own <= and_ || own == sum;
      return operand(*b.left, right ? own + 1 : own) + (breaks ? soft : ' ') + ast::spelling(b.op) + " " +
             operand(*b.right, right ? own : own + 1, true);
    }
    case ast::ExprKind::cast: {
      const auto& c = ast::as<ast::CastExpr>(e);
      return operand(*c.operand, cast) + " as " + cast_type(c.type);
    }
    case ast::ExprKind::is: {
      const auto& i = ast::as<ast::IsExpr>(e);
      return operand(*i.operand, is) + (i.negated ? " is not " : " is ") + print(i.literal);
    }
    case ast::ExprKind::conditional: {
      const auto& c = ast::as<ast::ConditionalExpr>(e);
      return operand(*c.value, conditional + 1) + soft + "if " + operand(*c.condition, conditional + 1) + soft + "else " +
             operand(*c.otherwise, conditional);
    }
    case ast::ExprKind::function: {
      const auto& f = ast::as<ast::FunctionExpr>(e);
      return "fn(" + joined(f.params) + ") = " + expr(*f.body);
    }
    case ast::ExprKind::call: {
      const auto& c = ast::as<ast::CallExpr>(e);
      return operand(*c.callee, atom) + args(c.args);
    }
    case ast::ExprKind::member: {
      const auto& m = ast::as<ast::MemberExpr>(e);
      return operand(*m.object, atom) + "." + m.name.text;
    }
    case ast::ExprKind::index: {
      const auto& i = ast::as<ast::IndexExpr>(e);
      std::string slices;
      for (const ast::Slice& s : i.slices) slices += (slices.empty() ? "" : comma) + slice(s);
      return operand(*i.object, atom) + "[" + slices + "]";
    }
    case ast::ExprKind::comprehension: {
      const auto& c = ast::as<ast::ComprehensionExpr>(e);
      const std::string over = c.range ? range(*c.range) : expr(*c.source);
      return "[" + expr(*c.element) + soft + "for " + c.variable.text + " in " + over +
             (c.condition ? std::string(1, soft) + "if " + expr(*c.condition) : "") + "]";
    }
    case ast::ExprKind::match: return match(ast::as<ast::MatchExpr>(e));
  }
  return {};
}

std::string Printer::match(const ast::MatchExpr& m) {
  std::string out = "match " + expr(*m.subject) + " {\n";
  indent_ += indent_step;
  for (const ast::Arm& a : m.arms) {
    std::string left;
    for (const ast::Literal& l : a.literals) left += (left.empty() ? "" : " | ") + print(l);
    if (a.wildcard) left = "_";
    if (a.binding) left += " as " + a.binding->text;
    out.append(indent_, ' ').append(left).append(" => ").append(expr(*a.value)).append("\n");
  }
  indent_ -= indent_step;
  return out.append(indent_, ' ').append("}");
}

std::string Printer::args(const ast::Args& a) {
  std::string out;
  for (const ast::Arg& arg : a.items) {
    if (!out.empty()) out += comma;
    if (arg.name) out += arg.name->text + ": ";
    out += expr(*arg.value);
  }
  return "(" + out + ")";
}

std::string Printer::slice(const ast::Slice& s) {
  switch (s.kind) {
    case ast::SliceKind::ellipsis: return "...";
    case ast::SliceKind::whole: return "..";
    case ast::SliceKind::index: return expr(*s.low);
    case ast::SliceKind::range: break;
  }
  return expr(*s.low) + ".." + expr(*s.high) + (s.step ? " by " + expr(*s.step) : "");
}

std::string Printer::range(const ast::Range& r) { return expr(*r.low) + ".." + (r.high ? expr(*r.high) : ""); }

// --- Types ----------------------------------------------------------------------------------------------------------

std::string Printer::shape(const ast::Shape& s) {
  std::string out;
  for (const ast::Axis& a : s.axes) out += (out.empty() ? "" : comma) + (a.ellipsis ? "..." : expr(*a.size));
  return "[" + out + "]";
}

std::string Printer::cast_type(const ast::CastType& c) {
  std::string out = c.is_index ? "index" : "";
  if (c.bound) out += "(" + expr(*c.bound) + ")";
  if (c.dtype) out += c.dtype->text;
  return c.shape ? out + shape(*c.shape) : out;
}

std::string Printer::type(const ast::Type& t) {
  std::string out;
  switch (t.kind) {
    case ast::TypeKind::list: {
      const auto& l = ast::as<ast::ListType>(t);
      out = "list[" + type(*l.element) + (l.length ? comma + expr(*l.length) : "") + "]";
      break;
    }
    case ast::TypeKind::map: out = "map[" + type(*ast::as<ast::MapType>(t).element) + "]"; break;
    case ast::TypeKind::index: {
      const auto& i = ast::as<ast::IndexType>(t);
      out = "index" + (i.bound ? "(" + expr(*i.bound) + ")" : "") + shape(i.shape);
      break;
    }
    case ast::TypeKind::function: out = "fn"; break;
    case ast::TypeKind::named: {
      const auto& n = ast::as<ast::NamedType>(t);
      out = n.path.text() + (n.args ? args(*n.args) : "") + (n.shape ? shape(*n.shape) : "");
      break;
    }
    case ast::TypeKind::tensor: out = shape(ast::as<ast::TensorType>(t).shape); break;
    case ast::TypeKind::literal:
      for (const ast::Literal& l : ast::as<ast::LiteralType>(t).literals) out += (out.empty() ? "" : " | ") + print(l);
      break;
  }
  return t.optional ? out + "?" : out;
}

// --- Small things by themselves -------------------------------------------------------------------------------------

std::string print(const ast::Expr& expr) { return Printer::one_line(Printer().expr(expr)); }
std::string print(const ast::Type& type) { return Printer::one_line(Printer().type(type)); }
std::string print(const ast::Shape& shape) { return Printer::one_line(Printer().shape(shape)); }
std::string print(const ast::Tensor& tensor) { return Printer::one_line(Printer().tensor(tensor)); }

}  // namespace modelc::syntax
