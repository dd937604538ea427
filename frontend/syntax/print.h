// The printer's parts: text of the small things, lines of the large ones. Private to this folder.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "frontend/syntax/ast.h"

namespace modelc::syntax {

class Printer {
 public:
  // Flat text, in which `soft` marks where a line may be broken (it stands for a blank) and '\n' where it must be.
  static constexpr char soft = '\x01';

  std::string expr(const ast::Expr& e);
  std::string type(const ast::Type& t);
  std::string shape(const ast::Shape& s);
  std::string args(const ast::Args& a);
  std::string range(const ast::Range& r);
  std::string tensor(const ast::Tensor& t);

  // Lines, appended to the text.
  void file(const ast::File& f);
  void item(const ast::Item& i);
  void statement(const ast::Statement& s);
  void rule(const ast::Rule& r);

  // The lines so far.
  std::string take();
  // A flat text as one, for those who print a small thing by itself.
  static std::string one_line(std::string flat);

 private:
  // A line at the present indentation, broken where it is too long.
  void line(const std::string& flat);
  void open(const std::string& flat);   // line + "{", deeper
  void close();                         // "}"
  // `head { }`, or the head, what `body` writes, and the closing brace.
  template <class Body> void braces(const std::string& head, bool empty, Body body);
  void doc(const std::string& text);

  std::string operand(const ast::Expr& e, int least, bool prefix_free = false);
  std::string bare(const ast::Expr& e);
  std::string match(const ast::MatchExpr& m);
  std::string slice(const ast::Slice& s);
  std::string cast_type(const ast::CastType& c);
  std::string exprs(const std::vector<ast::ExprPtr>& list);

  std::string params(const std::vector<ast::Param>& list);
  std::string result(const std::vector<ast::ResultItem>& list);
  std::string signature(const ast::Signature& s);
  std::string field(const ast::FieldItem& f);
  std::string keys(const std::vector<ast::KeyPattern>& list);
  std::string head(const ast::ModuleDecl& m);
  std::string at(const std::optional<ast::At>& a);
  std::string kernel(const ast::Kernel& k);
  void items(const std::vector<ast::ItemPtr>& list);
  void member(const ast::Item& i);
  void section(const ast::Item& i);
  void config(const ast::ConfigDecl& c);
  void variant(const ast::VariantDecl& v);
  void function(const ast::FunctionDecl& f);
  void op(const ast::OpDecl& o);
  void encoding(const ast::EncodingDecl& e);
  void test(const ast::TestDecl& t);
  void test_item(const ast::TestItem& t);
  std::string object(const ast::Object& o);
  void block(const std::string& head, const ast::Block& b);

  void rules(const std::string& head, const std::vector<ast::RulePtr>& list);
  void config_rule(const ast::ConfigRule& r);
  std::string tensors(const ast::Tensors& t);
  std::string tensor_list(const std::vector<ast::Tensor>& list);
  std::string calls(const std::vector<ast::Call>& list, const std::string& between);
  std::string via(const std::vector<ast::Call>& list);
  std::string when(const ast::ExprPtr& e);

  std::string out_;
  std::size_t indent_ = 0;
};

template <class Body> void Printer::braces(const std::string& head, bool empty, Body body) {
  if (empty) return line(head + " {}");
  open(head);
  body();
  close();
}

}  // namespace modelc::syntax
