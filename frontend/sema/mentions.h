// The names that the text of a declaration or member uses, each with its place, and those that it declares itself.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "frontend/syntax/ast.h"

namespace modelc::sema {

enum class MentionKind : std::uint8_t {
  name,                                          // in an expression
  type,                                          // as a type, or the module of a rule `for`
  base,                                          // behind `extends`
  argument,                                      // the name of an argument, at `span`; `name` and `member` are what is called
};

struct Mention {
  MentionKind kind = MentionKind::name;
  std::string name;
  source::Span span;
  std::string member;                            // of `alias.Name`; the span of both is `whole`
  source::Span whole;
};

void each_mention(const ast::Item& item, const std::function<void(const Mention&)>& visit);

// Parameters, members, fields and locals, of whatever depth.
void local_names(const ast::Item& item, std::set<std::string, std::less<>>& into);

}  // namespace modelc::sema
