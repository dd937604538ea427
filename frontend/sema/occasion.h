// A module that no file holds, written for one analysis and taken as its root in place of the model: how test blocks
// have their expressions and operations computed by the way that models go.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/source/source.h"
#include "frontend/syntax/ast.h"

namespace modelc::sema {

struct Occasion {
  std::string name;                              // of the text, where it shows in a message
  std::string text;                              // "module Inputs(x: fn) { forward() { return tensor(x()) } }"
  // Its parameters of type fn: expressions of the main file, which see the model's configurations by their names.
  std::vector<std::pair<std::string, const ast::Expr*>> fns;
  // Where messages about a part of the text [begin, end) belong. What lies in none of these is at the first.
  struct Place {
    std::size_t begin = 0, end = 0;
    source::Span span;
  };
  std::vector<Place> places;

  void append(const std::string& part, source::Span place) {
    places.push_back({text.size(), text.size() + part.size(), place});
    text += part;
  }
  source::Span place(std::size_t at) const {
    for (const Place& p : places)
      if (p.begin <= at && at < p.end) return p.span;
    return places.empty() ? source::Span{} : places.front().span;
  }
};

}  // namespace modelc::sema
