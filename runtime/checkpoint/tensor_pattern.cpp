#include "runtime/checkpoint/tensor_pattern.h"

#include "runtime/base/strings.h"

namespace modelc {
namespace {

// `*` in the pattern is any number of characters, also none.
bool part_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, back = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      back = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++back;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// A number; or "{1}", which stands for one in names that are patterns themselves.
bool is_index(std::string_view text) {
  if (text.size() > 2 && text.front() == '{' && text.back() == '}') text = text.substr(1, text.size() - 2);
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return false;
  for (char c : text)
    if (c < '0' || c > '9') return false;
  return true;
}

const std::string* find(const TensorPattern::Captures& captures, std::string_view name) {
  for (const auto& c : captures)
    if (c.first == name) return &c.second;
  return nullptr;
}

std::string joined(const std::vector<std::string_view>& parts, std::size_t begin, std::size_t end) {
  std::string s;
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin) s += '.';
    s += parts[i];
  }
  return s;
}

}  // namespace

TensorPattern::TensorPattern(std::string_view text) : text_(text) {
  if (text.empty()) return;
  for (std::string_view c : split(text, '.')) {
    Part part{Kind::text, std::string(c)};
    if (c == "**") part.kind = Kind::many;
    else if (c == "*") part.kind = Kind::any;
    else if (c.size() > 2 && c.front() == '{' && c.back() == '}') {
      part.text = c.substr(1, c.size() - 2);
      part.kind = Kind::index;
      if (part.text.back() == '*') {
        part.text.pop_back();
        part.kind = Kind::rest;
      }
    } else if (c.find('*') != std::string_view::npos) {
      part.kind = Kind::part;
    }
    plain_ = plain_ && part.kind == Kind::text;
    parts_.push_back(std::move(part));
  }
}

// Whether parts_[part..] match name[at..]; with `prefix`, the first components of it, and how many.
bool TensorPattern::walk(const std::vector<std::string_view>& name, std::size_t part, std::size_t at, Captures& captures,
                         std::size_t* prefix) const {
  // Parts of one component go on in the loop; only `many` and `rest` try several ends.
  while (part < parts_.size()) {
    const Part& p = parts_[part];
    if (p.kind == Kind::many || p.kind == Kind::rest) {
      if (p.kind == Kind::rest) {
        if (const std::string* held = find(captures, p.text)) {
          const std::size_t n = held->empty() ? 0 : split(*held, '.').size();
          if (at + n > name.size() || joined(name, at, at + n) != *held) return false;
          at += n;
          ++part;
          continue;
        }
      }
      // Two neighbours of this kind say no more than one, and would multiply the tries.
      if (p.kind == Kind::many && part + 1 < parts_.size() && parts_[part + 1].kind == Kind::many) {
        ++part;
        continue;
      }
      for (std::size_t end = name.size() + 1; end-- > at;) {
        const std::size_t held = captures.size();
        if (p.kind == Kind::rest) captures.emplace_back(p.text, joined(name, at, end));
        if (walk(name, part + 1, end, captures, prefix)) return true;
        captures.resize(held);
      }
      return false;
    }
    if (at == name.size()) return false;
    switch (p.kind) {
      case Kind::text:
        if (p.text != name[at]) return false;
        break;
      case Kind::part:
        if (!part_matches(p.text, name[at])) return false;
        break;
      case Kind::index:
        if (!is_index(name[at])) return false;
        if (const std::string* held = find(captures, p.text)) {
          if (*held != name[at]) return false;
        } else {
          captures.emplace_back(p.text, std::string(name[at]));
        }
        break;
      default: break;
    }
    ++part, ++at;
  }
  if (prefix != nullptr) {
    *prefix = at;
    return true;
  }
  return at == name.size();
}

std::optional<TensorPattern::Captures> TensorPattern::match(std::string_view name) const {
  Captures captures;
  if (plain_) {
    if (name == text_) return captures;
    return std::nullopt;
  }
  const auto parts = split(name, '.');
  if (parts.size() > max_components || !walk(parts, 0, 0, captures, nullptr)) return std::nullopt;
  return captures;
}

std::optional<TensorPattern::Captures> TensorPattern::match_prefix(std::string_view name, std::string& rest) const {
  Captures captures;
  std::size_t matched = 0;
  const auto parts = split(name, '.');
  if (parts.size() > max_components || !walk(parts, 0, 0, captures, &matched)) return std::nullopt;
  rest = joined(parts, matched, parts.size());
  return captures;
}

std::optional<std::string> TensorPattern::fill(const Captures& captures) const {
  std::string s;
  for (const Part& p : parts_) {
    const std::string* text = &p.text;
    if (p.kind == Kind::index || p.kind == Kind::rest) text = find(captures, p.text);
    else if (p.kind != Kind::text) text = nullptr;
    if (text == nullptr) return std::nullopt;
    if (p.kind == Kind::rest && text->empty()) continue;
    if (!s.empty()) s += '.';
    s += *text;
  }
  return s;
}

}  // namespace modelc
