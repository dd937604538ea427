// The dump's parts. Private to this folder.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "frontend/syntax/ast.h"

namespace modelc::syntax {

class Dumper {
 public:
  void file(const ast::File& f);
  void expr(const char* role, const ast::Expr& e);
  std::string take() { return std::move(out_); }

 private:
  void line(const std::string& text);
  template <class Body> void node(const std::string& text, Body body) {
    line(text);
    ++indent_;
    body();
    --indent_;
  }

  void expr(const char* role, const ast::ExprPtr& e);  // nothing for null
  void exprs(const std::vector<ast::ExprPtr>& list);
  std::string names(const std::vector<ast::Name>& list);
  void args(const ast::Args& a);
  void slice(const ast::Slice& s);
  void range(const char* role, const ast::Range& r);
  void shape(const ast::Shape& s);
  void type(const ast::Type& t);
  std::string tensor(const ast::Tensor& t);
  std::string tensors(const std::vector<ast::Tensor>& list);

  void item(const ast::Item& i);
  void items(const std::vector<ast::ItemPtr>& list);
  void doc(const std::string& text);
  void params(const std::vector<ast::Param>& list);
  void result(const std::vector<ast::ResultItem>& list);
  void signature(const ast::Signature& s);
  void block(const ast::Block& b);
  void statement(const ast::Statement& s);
  void rule(const ast::Rule& r);
  void rules(const std::vector<ast::RulePtr>& list);
  void calls(const char* role, const std::vector<ast::Call>& list);
  void section(const ast::Item& i);
  void test_item(const ast::TestItem& t);
  void object(const ast::Object& o);

  std::string out_;
  std::size_t indent_ = 0;
};

}  // namespace modelc::syntax
