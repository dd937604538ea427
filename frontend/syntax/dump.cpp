// Words, expressions, types, patterns.
#include "frontend/syntax/dump.h"

#include "frontend/syntax/dumper.h"
#include "frontend/syntax/printer.h"

namespace modelc::syntax {

void Dumper::line(const std::string& text) { out_.append(indent_ * 2, ' ').append(text).append("\n"); }

void Dumper::expr(const char* role, const ast::ExprPtr& e) {
  if (e) expr(role, *e);
}

void Dumper::expr(const char* role, const ast::Expr& e) {
  const std::string head = *role == '\0' ? "" : std::string(role) + ": ";
  switch (e.kind) {
    case ast::ExprKind::literal: return line(head + print(ast::as<ast::LiteralExpr>(e).value));
    case ast::ExprKind::name: return line(head + "name " + ast::as<ast::NameExpr>(e).name.text);
    case ast::ExprKind::tuple: return node(head + "tuple", [&] { exprs(ast::as<ast::TupleExpr>(e).items); });
    case ast::ExprKind::list: return node(head + "list", [&] { exprs(ast::as<ast::ListExpr>(e).items); });
    case ast::ExprKind::unary: {
      const auto& u = ast::as<ast::UnaryExpr>(e);
      return node(head + "unary " + ast::spelling(u.op), [&] { expr("", *u.operand); });
    }
    case ast::ExprKind::binary: {
      const auto& b = ast::as<ast::BinaryExpr>(e);
      return node(head + "binary " + ast::spelling(b.op), [&] {
        expr("", *b.left);
        expr("", *b.right);
      });
    }
    case ast::ExprKind::cast: {
      const auto& c = ast::as<ast::CastExpr>(e);
      return node(head + "cast", [&] {
        expr("", *c.operand);
        node(c.type.is_index ? "to index"
             : c.type.dtype  ? "to " + c.type.dtype->text
                             : "to",
             [&] {
               expr("bound", c.type.bound);
               if (c.type.shape) shape(*c.type.shape);
             });
      });
    }
    case ast::ExprKind::is: {
      const auto& i = ast::as<ast::IsExpr>(e);
      return node(head + (i.negated ? "is not " : "is ") + print(i.literal), [&] { expr("", *i.operand); });
    }
    case ast::ExprKind::conditional: {
      const auto& c = ast::as<ast::ConditionalExpr>(e);
      return node(head + "conditional", [&] {
        expr("value", *c.value);
        expr("if", *c.condition);
        expr("else", *c.otherwise);
      });
    }
    case ast::ExprKind::function: {
      const auto& f = ast::as<ast::FunctionExpr>(e);
      return node(head + "fn(" + names(f.params) + ")", [&] { expr("", *f.body); });
    }
    case ast::ExprKind::call: {
      const auto& c = ast::as<ast::CallExpr>(e);
      return node(head + "call", [&] {
        expr("", *c.callee);
        args(c.args);
      });
    }
    case ast::ExprKind::member: {
      const auto& m = ast::as<ast::MemberExpr>(e);
      return node(head + "member " + m.name.text, [&] { expr("", *m.object); });
    }
    case ast::ExprKind::index: {
      const auto& i = ast::as<ast::IndexExpr>(e);
      return node(head + "index", [&] {
        expr("", *i.object);
        for (const ast::Slice& s : i.slices) slice(s);
      });
    }
    case ast::ExprKind::comprehension: {
      const auto& c = ast::as<ast::ComprehensionExpr>(e);
      return node(head + "comprehension " + c.variable.text, [&] {
        expr("element", *c.element);
        if (c.range) range("in", *c.range);
        expr("in", c.source);
        expr("if", c.condition);
      });
    }
    case ast::ExprKind::match: {
      const auto& m = ast::as<ast::MatchExpr>(e);
      return node(head + "match", [&] {
        expr("", *m.subject);
        for (const ast::Arm& a : m.arms) {
          std::string left = a.wildcard ? "_" : "";
          for (const ast::Literal& l : a.literals) left += (left.empty() ? "" : " | ") + print(l);
          node("arm " + left + (a.binding ? " as " + a.binding->text : ""), [&] { expr("", *a.value); });
        }
      });
    }
  }
}

void Dumper::exprs(const std::vector<ast::ExprPtr>& list) {
  for (const ast::ExprPtr& e : list) expr("", *e);
}

std::string Dumper::names(const std::vector<ast::Name>& list) {
  std::string out;
  for (const ast::Name& n : list) out += (out.empty() ? "" : ", ") + n.text;
  return out;
}

void Dumper::args(const ast::Args& a) {
  for (const ast::Arg& arg : a.items) expr(arg.name ? arg.name->text.c_str() : "", *arg.value);
}

void Dumper::slice(const ast::Slice& s) {
  switch (s.kind) {
    case ast::SliceKind::ellipsis: return line("slice ...");
    case ast::SliceKind::whole: return line("slice ..");
    case ast::SliceKind::index: return node("slice", [&] { expr("", *s.low); });
    case ast::SliceKind::range:
      return node("slice range", [&] {
        expr("", *s.low);
        expr("", *s.high);
        expr("by", s.step);
      });
  }
}

void Dumper::range(const char* role, const ast::Range& r) {
  node(std::string(role) + ": range", [&] {
    expr("", *r.low);
    expr("", r.high);
  });
}

void Dumper::shape(const ast::Shape& s) {
  node("shape", [&] {
    for (const ast::Axis& a : s.axes) {
      if (a.ellipsis) {
        line("...");
      } else {
        expr("", *a.size);
      }
    }
  });
}

void Dumper::type(const ast::Type& t) {
  const std::string optional = t.optional ? "?" : "";
  switch (t.kind) {
    case ast::TypeKind::list: {
      const auto& l = ast::as<ast::ListType>(t);
      return node("type list" + optional, [&] {
        type(*l.element);
        expr("length", l.length);
      });
    }
    case ast::TypeKind::map: return node("type map" + optional, [&] { type(*ast::as<ast::MapType>(t).element); });
    case ast::TypeKind::index: {
      const auto& i = ast::as<ast::IndexType>(t);
      return node("type index" + optional, [&] {
        expr("bound", i.bound);
        shape(i.shape);
      });
    }
    case ast::TypeKind::function: return line("type fn" + optional);
    case ast::TypeKind::named: {
      const auto& n = ast::as<ast::NamedType>(t);
      return node("type " + n.path.text() + optional, [&] {
        if (n.args) node("args", [&] { args(*n.args); });
        if (n.shape) shape(*n.shape);
      });
    }
    case ast::TypeKind::tensor: return node("type tensor" + optional, [&] { shape(ast::as<ast::TensorType>(t).shape); });
    case ast::TypeKind::literal: {
      std::string out;
      for (const ast::Literal& l : ast::as<ast::LiteralType>(t).literals) out += (out.empty() ? "" : " | ") + print(l);
      return line("type literal" + optional + " " + out);
    }
  }
}

std::string Dumper::tensor(const ast::Tensor& t) {
  if (t.quoted) return quote(t.text);
  std::string out;
  for (const ast::Seg& s : t.segs) {
    static constexpr const char* kinds[] = {"", "#", "*", "**", "index ", "rest "};
    out += (out.empty() ? "" : " . ") + std::string(kinds[static_cast<std::size_t>(s.kind)]) + s.text;
  }
  return "<" + out + ">";
}

std::string Dumper::tensors(const std::vector<ast::Tensor>& list) {
  std::string out;
  for (const ast::Tensor& t : list) out += (out.empty() ? "" : ", ") + tensor(t);
  return out;
}

std::string dump(const ast::Expr& expr) {
  Dumper d;
  d.expr("", expr);
  return d.take();
}

}  // namespace modelc::syntax
