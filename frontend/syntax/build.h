// Parse tree to syntax tree. One method a rule of the grammar, in build_*.cpp by construct. The parse tree is free of
// errors; what a grammar cannot say (the range of a number, the escapes of a string) is checked here. Private to this
// folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ModelParser.h"
#include "antlr4-runtime.h"
#include "frontend/diagnostics/diagnostics.h"
#include "frontend/syntax/ast.h"
#include "frontend/syntax/tokens.h"

namespace modelc::syntax {

// A node with its place.
template <class T> std::unique_ptr<T> made(source::Span span) {
  auto node = std::make_unique<T>();
  node->span = span;
  return node;
}

class Builder {
 public:
  using P = grammar::ModelParser;

  Builder(const Tokens& tokens, diag::Sink& sink) : tokens_(tokens), sink_(sink) {}

  std::unique_ptr<ast::File> file(P::FileContext& c);
  ast::ExprPtr expr(P::ExprContext& c);

  // The byte behind each expression built so far.
  const std::vector<std::uint32_t>& ends() const { return ends_; }

 private:
  using Node = antlr4::tree::TerminalNode;

  // Places and words.
  source::Span span(const antlr4::ParserRuleContext& c) const;
  source::Span span(const antlr4::Token& t) const { return tokens_.span(t); }
  source::Span span(const antlr4::Token* first, const antlr4::Token* last) const;
  std::string text(const antlr4::Token& t) const { return std::string(tokens_.text(t)); }
  std::string doc(const antlr4::ParserRuleContext& c) const;
  ast::Name name(P::NameContext& c) const;
  ast::Name name(Node& id) const { return name(*id.getSymbol()); }
  ast::Name name(const antlr4::Token& id) const;
  std::vector<ast::Name> names(P::NamesContext& c) const;
  ast::Path path(P::PathContext& c) const;
  std::vector<ast::Path> paths(const std::vector<P::PathContext*>& list) const;
  ast::String string(Node& s);
  std::optional<ast::String> optional_string(Node* s);
  ast::Literal literal(P::LiteralContext& c);
  ast::Literal number(const antlr4::Token& t);
  std::optional<source::Span> word(const antlr4::Token* t) const;

  // Expressions; null stays null.
  ast::ExprPtr optional_expr(P::ExprContext* c) { return c == nullptr ? nullptr : expr(*c); }
  std::vector<ast::ExprPtr> exprs(const std::vector<P::ExprContext*>& list);
  ast::ExprPtr postfix(P::PostfixContext& c);
  ast::ExprPtr primary(P::PrimaryContext& c);
  ast::ExprPtr binary(P::BinaryContext& c);
  ast::ExprPtr list(P::ListPrimaryContext& c);
  ast::ExprPtr match(P::MatchPrimaryContext& c);
  ast::Args args(P::ArgsContext& c);
  ast::Slice slice(P::SliceContext& c);
  ast::Range range(P::RangeContext& c);
  ast::CastType cast_type(P::CastTypeContext& c);
  ast::Shape shape(P::ShapeContext& c);
  std::optional<ast::Shape> optional_shape(P::ShapeContext* c);
  ast::TypePtr type(P::TypeContext& c);
  ast::TypePtr simple_type(P::SimpleTypeContext& c);

  // Declarations, configurations.
  ast::ItemPtr decl(P::DeclContext& c);
  ast::ItemPtr axis_decl(P::AxisDeclContext& c);
  ast::ItemPtr config_decl(P::ConfigDeclContext& c);
  ast::ItemPtr variant_decl(P::VariantDeclContext& c);
  ast::ItemPtr config_item(P::ConfigItemContext& c);
  ast::ItemPtr field(P::FieldContext& c);
  ast::ItemPtr let(P::LetContext& c);
  ast::ItemPtr require(P::RequireContext& c);
  std::vector<ast::KeyPattern> keys(const std::vector<P::KeyContext*>& list);

  // Modules.
  ast::ItemPtr interface_decl(P::InterfaceDeclContext& c);
  ast::ItemPtr module_decl(P::ModuleDeclContext& c);
  ast::ItemPtr member(P::MemberContext& c);
  ast::ItemPtr function_decl(P::FnDeclContext& c);
  ast::ItemPtr op_decl(P::OpDeclContext& c);
  ast::ItemPtr encoding_decl(P::EncodingDeclContext& c);
  ast::ItemPtr section(P::SectionContext& c);
  std::vector<ast::Param> params(P::ParamsContext* c);
  ast::Signature signature(P::SignatureContext& c);
  std::vector<ast::ResultItem> result(P::ResultContext& c);
  std::optional<ast::At> at(P::AtContext* c);
  ast::Block block(P::BlockContext& c);
  ast::StatementPtr statement(P::StatementContext& c);

  // Checkpoints, tests.
  ast::ItemPtr checkpoint(P::CheckpointContext& c);
  std::vector<ast::RulePtr> rules(const std::vector<P::Rule_Context*>& list);
  ast::RulePtr rule(P::Rule_Context& c);
  ast::RulePtr config_rule(P::ConfigRuleContext& c);
  std::vector<ast::Call> via(P::ViaContext* c);
  ast::ExprPtr when(P::WhenContext* c);
  ast::Tensor tensor(P::TensorContext& c);
  std::vector<ast::Tensor> tensor_list(const std::vector<P::TensorContext*>& list);
  ast::Tensors tensors(P::TensorsContext& c);
  void segs(P::SegContext& c, std::vector<ast::Seg>& out);
  ast::Call call(P::CallContext& c);
  ast::ItemPtr test_decl(P::TestDeclContext& c);
  ast::TestItemPtr test_item(P::TestItemContext& c);
  ast::Object object(P::ObjectContext& c);

  const Tokens& tokens_;
  diag::Sink& sink_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace modelc::syntax
