// What runs through the stages between text and ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace modelc {

// A stretch of Pieces::text that still has to become ids, or an added token that already has its id.
struct Piece {
  std::size_t begin, end;
  std::int32_t id = -1;         // -1: text
  bool begins_text = false;     // whether it begins where the whole text does: what comes before a text may depend on it

  bool is_text() const { return id < 0; }
};

// The pieces in order. No piece of text is empty, and none sees beyond its ends: patterns are matched within one piece.
struct Pieces {
  std::string text;
  std::vector<Piece> pieces;

  std::string_view view(const Piece& p) const { return std::string_view(text).substr(p.begin, p.end - p.begin); }
  void add_text(std::string_view piece, bool begins_text) {
    if (piece.empty()) return;
    pieces.push_back({text.size(), text.size() + piece.size(), -1, begins_text});
    text.append(piece);
  }
};

}  // namespace modelc
