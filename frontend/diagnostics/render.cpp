#include "frontend/diagnostics/render.h"

#include <algorithm>
#include <string_view>

#include "frontend/source/utf8.h"

namespace modelc::diag {

namespace {

using source::Position;
using source::SourceManager;
using source::Span;

constexpr char hex_digits[] = "0123456789abcdef";

// Code points of a source line that are shown; a longer line is cut around its mark.
constexpr std::size_t max_shown = 140;

struct Style {
  bool on;
  const char* severity(Severity s) const {
    if (!on) return "";
    return s == Severity::error ? "\x1b[1;31m" : s == Severity::warning ? "\x1b[1;35m" : "\x1b[1;36m";
  }
  const char* bold() const { return on ? "\x1b[1m" : ""; }
  const char* faint() const { return on ? "\x1b[1;34m" : ""; }
  const char* off() const { return on ? "\x1b[0m" : ""; }
};

// Text from files and users, safe to show: control characters as \x1b, what is not UTF-8 as U+FFFD. Line breaks stay,
// and what follows one is indented.
std::string shown(std::string_view text, std::string_view indent = "    ") {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const source::Utf8Char c = source::decode_utf8(text, i);
    if (!c.valid) {
      out += "\xEF\xBF\xBD";
    } else if (c.code_point == '\n') {
      out.append("\n").append(indent);
    } else if (c.code_point < 0x20 || (c.code_point >= 0x7F && c.code_point < 0xA0)) {
      out.append("\\x").push_back(hex_digits[c.code_point >> 4 & 15]);
      out.push_back(hex_digits[c.code_point & 15]);
    } else {
      out += text.substr(i, c.length);
    }
    i += c.length;
  }
  return out;
}

// A source line cut to what is shown, with marks under bytes [begin, end) of it.
struct Excerpt {
  std::string text;
  std::string marks;  // blanks, then one `mark` for each column
};

Excerpt excerpt(std::string_view line, std::size_t begin, std::size_t end, char mark) {
  begin = std::min(begin, line.size());
  end = std::clamp(end, begin, line.size());
  // The first byte shown: the mark stands after a third of the window when the line is cut.
  std::size_t first = 0;
  if (source::count_code_points(line) > max_shown) {
    std::size_t ahead = source::count_code_points(line.substr(0, begin));
    for (; ahead > max_shown / 3; --ahead) first += source::decode_utf8(line, first).length;
  }
  Excerpt e;
  if (first > 0) {
    e.text.append("…");
    e.marks.push_back(' ');
  }
  std::size_t count = 0;
  for (std::size_t i = first; i < line.size(); ++count) {
    if (count == max_shown) {
      e.text += "…";
      break;
    }
    const source::Utf8Char c = source::decode_utf8(line, i);
    std::string piece = c.valid && c.code_point == '\t' ? "\t" : shown(line.substr(i, c.length));
    // A tab stays one in the marks too, so that both lines align whatever its width is.
    const bool marked = i >= begin && i < end;
    if (piece == "\t") {
      if (marked) piece = " ";
      if (i < end) e.marks += marked ? std::string(1, mark) : "\t";
    } else if (i < end) {
      const bool one = c.valid && piece.size() == c.length;
      const int width = one ? source::display_width(c.code_point) : c.valid ? static_cast<int>(piece.size()) : 1;
      e.marks.append(static_cast<std::size_t>(width), marked ? mark : ' ');
    }
    e.text += piece;
    i += c.length;
  }
  // Nothing to underline: a point between two characters, or the end of the line.
  if (begin == end || e.marks.find(mark) == std::string::npos) e.marks.push_back(mark);
  return e;
}

// The part of `span` that stands on its first line, as byte offsets in that line.
struct OnLine {
  std::uint32_t line;
  std::string_view text;
  std::size_t begin;
  std::size_t end;
};

OnLine on_first_line(const SourceManager& sources, Span span) {
  const std::uint32_t line = sources.position(span.file, span.begin).line;
  const std::uint32_t start = sources.line_begin(span.file, line);
  return {line, sources.line_text(span.file, line), span.begin - start, span.end - start};
}

struct Renderer {
  const SourceManager& sources;
  Style style;
  bool full_paths;
  std::string out;

  // Where an editor finds it: texts from memory have no path and keep their name.
  std::string place(Span span) const {
    const std::string& path = sources.real_path(span.file).native();
    std::string text = sources.place(span);
    if (full_paths && !path.empty()) text.replace(0, sources.display_name(span.file).size(), path);
    return text;
  }

  void gutter(std::string_view number, std::size_t width) {
    out += style.faint();
    out.append(number).append(width - number.size(), ' ').append(" |").append(style.off());
  }

  void marks(std::string_view under, std::string_view text, const char* colour, std::size_t width) {
    gutter("", width);
    out.append(" ").append(colour).append(under);
    if (!text.empty()) out.append(" ").append(shown(text, std::string(width + 3 + under.size() + 1, ' ')));
    out.append(style.off()).append("\n");
  }

  // "  --> place", the line, the marks, and the marks of those of `same_line` that stand on it.
  void snippet(Span span, std::string_view text, char mark, const char* colour, const std::vector<Label>& same_line) {
    out.append(style.faint()).append("  --> ").append(style.off()).append(shown(place(span))).append("\n");
    const OnLine at = on_first_line(sources, span);
    const std::string number = std::to_string(at.line);
    const Excerpt e = excerpt(at.text, at.begin, at.end, mark);
    gutter(number, number.size());
    if (!e.text.empty()) out.append(" ").append(e.text);
    out += "\n";
    marks(e.marks, text, colour, number.size());
    for (const Label& l : same_line) {
      const OnLine there = on_first_line(sources, l.span);
      marks(excerpt(there.text, there.begin, there.end, '-').marks, l.text, style.faint(), number.size());
    }
  }
};

// Whether the label can be shown below the primary mark: it stands on that line, and the line is shown whole.
bool shares_line(const SourceManager& sources, Span primary, Span other) {
  if (primary.file != other.file) return false;
  const OnLine a = on_first_line(sources, primary);
  return a.line == on_first_line(sources, other).line && source::count_code_points(a.text) <= max_shown;
}

void json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  for (std::size_t i = 0; i < text.size();) {
    const source::Utf8Char c = source::decode_utf8(text, i);
    if (!c.valid) {
      out += "\xEF\xBF\xBD";
    } else if (c.code_point == '"' || c.code_point == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c.code_point));
    } else if (c.code_point == '\n') {
      out += "\\n";
    } else if (c.code_point == '\t') {
      out += "\\t";
    } else if (c.code_point < 0x20 || c.code_point == 0x7F) {
      out += "\\u00";
      out.push_back(hex_digits[c.code_point >> 4 & 15]);
      out.push_back(hex_digits[c.code_point & 15]);
    } else {
      out += text.substr(i, c.length);
    }
    i += c.length;
  }
  out.push_back('"');
}

const char* word(Severity s) { return s == Severity::error ? "error" : s == Severity::warning ? "warning" : "note"; }

}  // namespace

std::string render(const Diagnostic& d, const SourceManager& sources, const RenderOptions& options) {
  const Style style{options.colour};
  Renderer r{sources, style, options.full_paths, {}};
  r.out.append(style.severity(d.severity)).append(word(d.severity));
  r.out.append("[").append(d.code->text).append("]").append(style.off()).append(style.bold());
  r.out.append(": ").append(shown(d.message)).append(style.off()).append("\n");

  std::vector<Label> below, elsewhere;
  for (const Label& l : d.labels) { (d.primary.valid() && shares_line(sources, d.primary, l.span) ? below : elsewhere).push_back(l); }
  if (d.primary.valid()) {
    r.snippet(d.primary, d.primary_label, '^', style.severity(d.severity), below);
  } else if (!d.place.empty()) {
    r.out.append(style.faint()).append("  --> ").append(style.off()).append(shown(d.place)).append("\n");
    if (!d.primary_label.empty()) r.out.append("  ").append(shown(d.primary_label)).append("\n");
  }
  for (const Label& l : elsewhere) r.snippet(l.span, l.text, '-', style.faint(), {});
  for (const std::string& n : d.notes) r.out.append("  ").append(shown(n)).append("\n");
  if (!d.help.empty()) {
    r.out.append("  ").append(style.bold()).append("help:").append(style.off());
    r.out.append(" ").append(shown(d.help, "        ")).append("\n");
  }
  return r.out;
}

std::string render(const Sink& sink, const SourceManager& sources, const RenderOptions& options) {
  const std::vector<Diagnostic>& all = sink.diagnostics();
  // Errors are what the user came for: when not all can be shown, warnings and notes give way first.
  std::size_t left = options.limit == 0 ? all.size() : options.limit;
  std::vector<bool> take(all.size(), false);
  for (const bool errors : {true, false}) {
    for (std::size_t i = 0; i < all.size() && left > 0; ++i) {
      if ((all[i].severity == Severity::error) == errors) take[i] = true, --left;
    }
  }
  std::string out;
  std::size_t errors_shown = 0, warnings_shown = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!take[i]) continue;
    if (!out.empty()) out += "\n";
    out += render(all[i], sources, options);
    errors_shown += all[i].severity == Severity::error;
    warnings_shown += all[i].severity == Severity::warning;
  }
  auto more = [&out](std::size_t n, const char* what) {
    if (n == 0) return;
    out.append("\n").append(std::to_string(n)).append(" more ").append(what).append(n == 1 ? "" : "s");
    out.append(" not shown\n");
  };
  more(sink.error_count() - errors_shown, "error");
  more(sink.warning_count() - warnings_shown, "warning");
  return out;
}

std::string render_json(const Diagnostic& d, const SourceManager& sources) {
  std::string out = "{\"code\":";
  json_string(out, d.code->text);
  out += ",\"severity\":";
  json_string(out, word(d.severity));
  out += ",\"message\":";
  json_string(out, d.message);
  out += ",\"file\":";
  if (d.primary.valid()) {
    const Position begin = sources.position(d.primary.file, d.primary.begin);
    const Position end = sources.position(d.primary.file, d.primary.end);
    json_string(out, sources.display_name(d.primary.file));
    out.append(",\"line\":").append(std::to_string(begin.line));
    out.append(",\"column\":").append(std::to_string(begin.column));
    out.append(",\"end\":{\"line\":").append(std::to_string(end.line));
    out.append(",\"column\":").append(std::to_string(end.column)).append("}");
  } else {
    if (d.place.empty()) {
      out += "null";
    } else {
      json_string(out, d.place);
    }
    out += ",\"line\":null,\"column\":null,\"end\":null";
  }
  out += ",\"label\":";
  json_string(out, d.primary_label);
  out += ",\"notes\":[";
  bool first = true;
  auto element = [&](const std::string& text) {
    if (!first) out += ",";
    first = false;
    json_string(out, text);
  };
  for (const Label& l : d.labels) element(sources.place(l.span) + ": " + l.text);
  for (const std::string& n : d.notes) element(n);
  out += "],\"help\":";
  json_string(out, d.help);
  return out + "}\n";
}

std::string render_json(const Sink& sink, const SourceManager& sources) {
  std::string out;
  for (const Diagnostic& d : sink.diagnostics()) out += render_json(d, sources);
  return out;
}

}  // namespace modelc::diag
