// The parts of the formatter (format.h). Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ModelParser.h"
#include "frontend/syntax/tokens.h"

namespace modelc::syntax {

inline constexpr std::size_t no_piece = static_cast<std::size_t>(-1);

// A word, a sign or a comment, with what the grammar says of it (format_roles.cpp).
struct Piece {
  std::string_view text;
  std::size_t type = 0;          // of the token; 0 for a comment that is none
  bool comment = false;
  bool doc = false;              // a comment `///`
  bool item = false;             // begins a declaration, member, statement, rule, arm, entry
  bool tight_before = false;     // no blank before, after
  bool tight_after = false;
  bool breaks_before = false;    // an operator or a word before which a long line may be broken
  std::size_t owner = no_piece;  // of `{` and `}`: the piece with which what has the braces begins
  std::size_t open = no_piece;   // the innermost bracket that is open before it; of a closing one, its partner
  std::size_t depth = 0;         // brackets open before it
  std::size_t item_piece = no_piece;  // with which the innermost item around it begins

  // In the input: line from 0, column from 0 in code points, blanks before it on its line.
  std::size_t line = 0, column = 0, gap = 0, width = 0;
  bool first = false;            // on its line
  bool blank_before = false;     // first on its line, with an empty line before
};

// The pieces of a text in order; empty, with errors in `sink`, when it does not parse.
std::vector<Piece> pieces_of(Tokens& tokens, grammar::ModelParser::FileContext& file);

// One round of formatting. `align`: whether columns are kept.
std::string lay_out(const std::vector<Piece>& pieces, std::size_t columns, bool align);

}  // namespace modelc::syntax
