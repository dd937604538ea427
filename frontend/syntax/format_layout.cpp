// Where each word of a text to be formatted goes.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "frontend/syntax/formatter.h"

namespace modelc::syntax {

namespace {

constexpr std::size_t indent_step = 4;
constexpr std::size_t continuation = 8;
constexpr std::size_t farthest = 60;              // a continued line keeps no larger distance

struct Line {
  std::size_t begin = 0, end = 0;                 // pieces
  std::size_t indent = 0;
};

class Layout {
 public:
  Layout(const std::vector<Piece>& pieces, std::size_t columns, bool align)
      : pieces_(pieces), columns_(columns), column_(pieces.size()), group_(pieces.size(), no_piece), line_of_(pieces.size()) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (lines_.empty() || pieces[i].first) lines_.push_back({i, i, 0});
      lines_.back().end = i + 1;
      line_of_[i] = lines_.size() - 1;
    }
    find_continued_comments();
    if (align) find_groups();
  }

  std::string text() {
    // Indents follow from columns and columns from indents; they settle after a few rounds.
    place_all();
    for (int round = 0; round < 12; ++round) {
      const std::vector<std::size_t> before = column_;
      widen_groups();
      place_all();
      if (column_ == before) break;
    }
    std::string out;
    for (std::size_t l = 0; l < lines_.size(); ++l) write(out, l);
    return out;
  }

 private:
  const Piece& piece(std::size_t i) const { return pieces_[i]; }

  // The blanks that belong before a piece that is not the first on its line.
  std::size_t gap(std::size_t i) const {
    const Piece& p = piece(i);
    const Piece& before = piece(i - 1);
    if (p.comment) return p.gap >= 2 ? 2 : 1;
    if (p.tight_before || before.tight_after) return 0;
    if (before.text == "{" && p.text == "}") return 0;
    if (p.item && before.text != "{") return std::clamp<std::size_t>(p.gap, 2, 4);
    return 1;
  }

  // --- Columns that the input has --------------------------------------------------------------------------------------

  struct Group {
    std::size_t column = 0;                       // in the output; of comments, in the input
    std::vector<std::size_t> members;
    bool comments = false;
  };

  void find_groups() {
    constexpr std::size_t farthest_line = 4;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> open;  // by column and depth, near each other
    std::map<std::size_t, std::vector<std::size_t>> comments;                      // by column, in the file
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& p = piece(i);
      if (p.first) continue;
      if (p.comment) {
        if (!p.doc) comments[p.column].push_back(i);
      } else if (gap(i) > 0 && p.gap > 0) {
        std::vector<std::size_t>& members = open[{p.column, p.depth}];
        if (!members.empty() && p.line - piece(members.back()).line > farthest_line) {
          add_group(std::move(members), 0, false);
          members.clear();
        }
        members.push_back(i);
      }
    }
    for (auto& [key, members] : open) add_group(std::move(members), 0, false);
    for (auto& [column, members] : comments) add_group(std::move(members), column, true);
  }

  void add_group(std::vector<std::size_t> members, std::size_t column, bool comments) {
    const bool meant = std::any_of(members.begin(), members.end(), [&](std::size_t i) { return piece(i).gap >= 2; });
    if (members.size() < 2 || !meant) return;
    for (const std::size_t i : members) group_[i] = groups_.size();
    groups_.push_back({column, std::move(members), comments});
  }

  // Each column is as far to the right as its farthest word needs it.
  void widen_groups() {
    for (Group& g : groups_) {
      if (g.comments) continue;
      g.column = 0;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t l = 0; l < lines_.size(); ++l) place_line(l, &changed);
    }
  }

  // --- Columns of the output -------------------------------------------------------------------------------------------

  void place_all() {
    for (std::size_t l = 0; l < lines_.size(); ++l) {
      lines_[l].indent = indent_of(l);
      place_line(l, nullptr);
    }
    // Comments on lines of their own stand as what follows them does.
    for (std::size_t l = lines_.size(); l-- > 0;) {
      if (!piece(lines_[l].begin).comment) continue;
      lines_[l].indent = comment_indent(l);
      place_line(l, nullptr);
    }
    // Unless they go on with a comment behind a line.
    for (std::size_t l = 1; l < lines_.size(); ++l) {
      if (!goes_on_[l]) continue;
      lines_[l].indent = column_[lines_[l - 1].end - 1];
      place_line(l, nullptr);
    }
  }

  void place_line(std::size_t l, bool* changed) {
    const Line& line = lines_[l];
    std::size_t at = line.indent;
    for (std::size_t i = line.begin; i < line.end; ++i) {
      if (i > line.begin) {
        at += gap(i);
        if (group_[i] != no_piece) {
          Group& g = groups_[group_[i]];
          if (g.comments) {
            at = std::max(at - gap(i) + 1, g.column);
          } else {
            if (changed != nullptr && at > g.column) g.column = at, *changed = true;
            at = std::max(at, g.column);
          }
        }
      }
      column_[i] = at;
      at += piece(i).width;
    }
  }

  // A comment on a line of its own, below the one behind the line before.
  void find_continued_comments() {
    goes_on_.assign(lines_.size() + 1, false);
    for (std::size_t l = 1; l < lines_.size(); ++l) {
      const Piece& p = piece(lines_[l].begin);
      const Piece& last = piece(lines_[l - 1].end - 1);
      if (!p.comment || p.doc || p.blank_before || !last.comment || last.column != p.column) continue;
      goes_on_[l] = lines_[l - 1].end - lines_[l - 1].begin > 1 || goes_on_[l - 1];
    }
  }

  std::size_t comment_indent(std::size_t l) const {
    const std::size_t next = lines_[l].end;
    if (next >= pieces_.size()) return 0;
    const Piece& p = piece(next);
    if (!p.comment && p.text == "}" && p.owner != no_piece) return inside(p.open);
    return lines_[l + 1].indent;
  }

  std::size_t line_indent(std::size_t i) const { return lines_[line_of_[i]].indent; }

  // Where things in the braces that open at `brace` stand.
  std::size_t inside(std::size_t brace) const {
    std::size_t first = brace + 1;
    if (first < pieces_.size() && !piece(first).first && !piece(first).comment) return column_[first];
    const std::size_t owner = piece(brace).owner;
    return line_indent(owner == no_piece ? brace : owner) + indent_step;
  }

  std::size_t indent_of(std::size_t l) const {
    const std::size_t i = lines_[l].begin;
    const Piece& p = piece(i);
    if (p.comment) return 0;
    if (p.text == "}" && p.owner != no_piece) return line_indent(p.owner);
    if (p.text == ")" || p.text == "]") return line_indent(p.open);
    const bool in_braces = p.open != no_piece && piece(p.open).text == "{";
    if (p.item) return in_braces ? inside(p.open) : 0;
    // Things in braces that are no items of the grammar's: arms and the like are, so this is a line that goes on.
    return continued(l);
  }

  std::size_t continued(std::size_t l) const {
    const Piece& p = piece(lines_[l].begin);
    const std::size_t item = p.item_piece == no_piece ? 0 : p.item_piece;
    const std::size_t home = line_of_[item];
    // Below a word of the line before, or below the first word of a line or behind a bracket further up.
    for (std::size_t up = l; up-- > home && l - up < 100;) {
      for (std::size_t i = std::max(lines_[up].begin, item); i < lines_[up].end; ++i) {
        const Piece& q = piece(i);
        const bool starts = i > item && (i == lines_[up].begin || (!piece(i - 1).comment && piece(i - 1).tight_after));
        if (q.column == p.column && !q.comment && (starts || (up + 1 == l && i > item))) return column_[i];
      }
    }
    const std::size_t from = piece(lines_[home].begin).column, base = lines_[home].indent;
    if (p.column <= from || p.column - from > farthest || (p.column - from) % indent_step != 0) return base + continuation;
    return base + (p.column - from);
  }

  // --- Lines that are too long -----------------------------------------------------------------------------------------

  std::size_t end_of(std::size_t i) const { return column_[i] + piece(i).width; }

  // Before which piece of [begin, end) to break, when `moved` columns less are used; none where nothing can be broken.
  std::optional<std::size_t> cut(std::size_t begin, std::size_t end, std::size_t shift) const {
    const std::size_t start = column_[begin] - shift, third = start + (columns_ - std::min(columns_, start)) / 3;
    std::optional<std::size_t> best;
    std::tuple<bool, std::size_t, int, std::size_t> best_score;
    for (std::size_t i = begin + 1; i < end; ++i) {
      const Piece& p = piece(i);
      const Piece& before = piece(i - 1);
      int quality = 0;
      if (p.tight_before) continue;
      if (p.item || before.text == "," || (p.breaks_before && p.text != "+" && p.text != "-")) quality = 0;
      else if (p.breaks_before || before.text == "=" || before.text == "=>") quality = 1;
      else if (before.text == "(" || before.text == "[") quality = 2;
      else continue;
      const std::size_t to = end_of(i - 1) - shift;
      if (to > columns_) {
        if (!best) best = i;
        break;
      }
      const std::tuple score(to < third, p.depth, quality, columns_ - to);
      if (!best || score < best_score) best = i, best_score = score;
    }
    return best;
  }

  void write(std::string& out, std::size_t l) {
    const Line& line = lines_[l];
    if (piece(line.begin).blank_before && l > 0) out += '\n';
    std::size_t end = line.end;
    const bool behind = line.end - line.begin > 1 && piece(line.end - 1).comment;
    if (behind && !piece(line.end - 1).doc && end_of(line.end - 1) > columns_ && !goes_on_[l + 1]) {
      // Before the line, where it says the same.
      --end;
      out.append(line.indent, ' ').append(piece(end).text).append("\n");
    }
    std::size_t begin = line.begin, shift = 0, at = line.indent;
    out.append(at, ' ');
    while (true) {
      // A comment behind the line does not count: it is only here when it may not move.
      const std::size_t code_end = end - (end == line.end && behind ? 1 : 0);
      std::optional<std::size_t> broken;
      if (code_end > begin && end_of(code_end - 1) - shift > columns_) broken = cut(begin, code_end, shift);
      const std::size_t stop = broken.value_or(end);
      for (std::size_t i = begin; i < stop; ++i) {
        if (i > begin) out.append(column_[i] - end_of(i - 1), ' ');
        out += piece(i).text;
      }
      out += '\n';
      if (!broken) break;
      begin = *broken;
      const Piece& p = piece(begin);
      const std::size_t home = p.item_piece == no_piece ? line.indent : lines_[line_of_[p.item_piece]].indent;
      at = p.item ? home : home + continuation;
      if (p.item && p.open != no_piece && piece(p.open).text == "{") at = std::min(inside(p.open), column_[begin]);
      shift = column_[begin] - std::min(column_[begin], at);
      out.append(at, ' ');
    }
  }

  const std::vector<Piece>& pieces_;
  std::size_t columns_;
  std::vector<std::size_t> column_;               // in the output
  std::vector<std::size_t> group_;
  std::vector<std::size_t> line_of_;
  std::vector<Line> lines_;
  std::vector<Group> groups_;
  std::vector<bool> goes_on_;                     // by line
};

}  // namespace

std::string lay_out(const std::vector<Piece>& pieces, std::size_t columns, bool align) { return Layout(pieces, columns, align).text(); }

}  // namespace modelc::syntax
