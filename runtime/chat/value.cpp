#include "runtime/chat/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "runtime/tokenizer/unicode.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc::chat {

std::optional<std::int64_t> Value::integer() const {
  if (const bool* b = boolean()) return *b ? 1 : 0;
  if (const auto* i = std::get_if<std::int64_t>(&v_)) return *i;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const auto* d = std::get_if<double>(&v_)) return *d;
  if (const auto i = integer()) return static_cast<double>(*i);
  return std::nullopt;
}

bool Value::same(const Value& other) const {
  if (v_.index() != other.v_.index()) return false;
  if (list()) return list() == other.list();
  if (dict()) return dict() == other.dict();
  if (name_space()) return name_space() == other.name_space();
  if (callable()) return callable() == other.callable();
  return is_undefined() || equal(*this, other);
}

Value* Dict::find(std::string_view key) {
  for (auto& [k, v] : items)
    if (k == key) return &v;
  return nullptr;
}

void Dict::set(std::string_view key, Value value) {
  if (Value* found = find(key)) *found = std::move(value);
  else items.emplace_back(key, std::move(value));
}

Value from_json(const Json& json) {
  switch (json.kind()) {
    case Json::Kind::null: return None{};
    case Json::Kind::boolean: return *json.as_bool();
    case Json::Kind::int64: return *json.as_int();
    case Json::Kind::uint64:
    case Json::Kind::number: return *json.as_double();
    case Json::Kind::string: return *json.as_string();
    case Json::Kind::array: {
      std::vector<Value> items;
      for (const Json& j : *json.as_array()) items.push_back(from_json(j));
      return make_list(std::move(items));
    }
    case Json::Kind::object: {
      auto dict = std::make_shared<Dict>();
      for (const JsonMember& m : *json.as_object()) dict->items.emplace_back(m.key, from_json(m.value));
      return dict;
    }
  }
  return None{};
}

std::string type_name(const Value& v) {
  if (v.is_undefined()) return "undefined";
  if (v.is_none()) return "none";
  if (v.is_bool()) return "a boolean";
  if (v.is_int()) return "a whole number";
  if (v.is_float()) return "a number";
  if (v.string()) return "a string";
  if (v.list()) return v.list()->is_tuple ? "a tuple" : "a list";
  if (v.dict()) return "a mapping";
  if (v.name_space()) return "a namespace";
  return "a function";
}

bool truth(const Value& v) {
  if (v.is_undefined() || v.is_none()) return false;
  if (const bool* b = v.boolean()) return *b;
  if (const auto n = v.number()) return *n != 0;
  if (v.string()) return !v.string()->empty();
  if (v.list()) return !v.list()->items.empty();
  if (v.dict()) return !v.dict()->items.empty();
  return true;
}

bool equal(const Value& a, const Value& b, int depth) {
  if (depth <= 0) return false;
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_number() && b.is_number()) {
    if (a.integer() && b.integer()) return *a.integer() == *b.integer();
    return *a.number() == *b.number();
  }
  if (a.string() && b.string()) return *a.string() == *b.string();
  if (a.list() && b.list()) {
    const List &x = *a.list(), &y = *b.list();
    return x.is_tuple == y.is_tuple && x.items.size() == y.items.size() &&
           std::equal(x.items.begin(), x.items.end(), y.items.begin(),
                      [&](const Value& i, const Value& j) { return equal(i, j, depth - 1); });
  }
  if (a.dict() && b.dict()) {
    Dict &x = *a.dict(), &y = *b.dict();
    return x.items.size() == y.items.size() && std::all_of(x.items.begin(), x.items.end(), [&](const auto& item) {
             const Value* other = y.find(item.first);
             return other && equal(item.second, *other, depth - 1);
           });
  }
  return a.same(b);
}

std::optional<int> compare(const Value& a, const Value& b, int depth) {
  if (depth <= 0) return std::nullopt;
  const auto sign = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.is_number() && b.is_number()) return a.integer() && b.integer() ? sign(*a.integer(), *b.integer()) : sign(*a.number(), *b.number());
  if (a.string() && b.string()) return sign(*a.string(), *b.string());  // by code as UTF-8 is by byte
  if (a.list() && b.list()) {
    const auto &x = a.list()->items, &y = b.list()->items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(x[i], y[i], depth - 1)) return compare(x[i], y[i], depth - 1);
    return sign(x.size(), y.size());
  }
  return std::nullopt;
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);
  std::string digits;
  for (const char c : text.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  std::string out = text[0] == '-' ? "-" : "";
  const auto count = static_cast<int>(digits.size());
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) return out + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  return out + digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." + digits.substr(static_cast<std::size_t>(exponent) + 1);
}

namespace {

void append_string_repr(std::string& out, std::string_view text) {
  const bool doubled = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = doubled ? '"' : '\'';
  out += quote;
  char buffer[16];
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    const std::string_view bytes = text.substr(at, c.size);
    at += c.size;
    if (c.code == static_cast<unsigned char>(quote) || c.code == '\\') {
      out += '\\';
      out += bytes;
    } else if (c.code == '\n' || c.code == '\r' || c.code == '\t') {
      out += c.code == '\n' ? "\\n" : c.code == '\r' ? "\\r" : "\\t";
    } else {
      const std::string_view kind = unicode::category(c.code);
      if (c.code == ' ' || (kind[0] != 'C' && kind[0] != 'Z')) {
        out += bytes;
        continue;
      }
      const char* form = c.code < 0x100 ? "\\x%02x" : c.code < 0x10000 ? "\\u%04x" : "\\U%08x";
      std::snprintf(buffer, sizeof buffer, form, static_cast<unsigned>(c.code));
      out += buffer;
    }
  }
  out += quote;
}

void append_text(std::string& out, const Value& v, std::size_t limit) {
  if (v.is_undefined()) return;
  if (v.string()) out += *v.string();
  else append_repr(out, v, limit);
}

void append_json_string(std::string& out, std::string_view text, bool ensure_ascii) {
  out += '"';
  char buffer[16];
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    const std::string_view bytes = text.substr(at, c.size);
    at += c.size;
    switch (c.code) {
      case '"': out += "\\\""; continue;
      case '\\': out += "\\\\"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\t': out += "\\t"; continue;
      case '\b': out += "\\b"; continue;
      case '\f': out += "\\f"; continue;
      default: break;
    }
    const auto escape = [&](unsigned code) {
      std::snprintf(buffer, sizeof buffer, "\\u%04x", code);
      out += buffer;
    };
    if (c.code < 0x20 || (ensure_ascii && c.code >= 0x7F && c.code < 0x10000 && c.code != 0x7F)) {
      escape(static_cast<unsigned>(c.code));
    } else if (ensure_ascii && c.code >= 0x10000) {
      escape(0xD800 + ((static_cast<unsigned>(c.code) - 0x10000) >> 10));
      escape(0xDC00 + ((static_cast<unsigned>(c.code) - 0x10000) & 0x3FF));
    } else {
      out += bytes;
    }
  }
  out += '"';
}

}  // namespace

std::string to_text(const Value& value, std::size_t limit) {
  std::string out;
  append_text(out, value, limit);
  return out;
}

void append_repr(std::string& out, const Value& v, std::size_t limit, int depth) {
  if (out.size() > limit) return;
  if (depth <= 0) {
    out += "...";
  } else if (v.is_undefined()) {
    out += "Undefined";
  } else if (v.is_none()) {
    out += "None";
  } else if (const bool* b = v.boolean()) {
    out += *b ? "True" : "False";
  } else if (v.is_int()) {
    out += std::to_string(*v.integer());
  } else if (v.is_float()) {
    out += float_text(*v.number());
  } else if (v.string()) {
    append_string_repr(out, *v.string());
  } else if (v.list()) {
    const List& list = *v.list();
    out += list.is_tuple ? '(' : '[';
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out += ", ";
      append_repr(out, list.items[i], limit, depth - 1);
      if (out.size() > limit) return;
    }
    if (list.is_tuple && list.items.size() == 1) out += ',';
    out += list.is_tuple ? ')' : ']';
  } else if (v.dict()) {
    out += '{';
    bool first = true;
    for (const auto& [key, item] : v.dict()->items) {
      if (!first) out += ", ";
      first = false;
      append_string_repr(out, key);
      out += ": ";
      append_repr(out, item, limit, depth - 1);
      if (out.size() > limit) return;
    }
    out += '}';
  } else {
    out += v.name_space() ? "<Namespace>" : "<function " + v.callable()->name + ">";
  }
}

std::optional<std::string> append_json(std::string& out, const Value& v, const JsonStyle& style, std::size_t limit, int depth) {
  if (out.size() > limit) return std::nullopt;  // the caller looks at the size
  if (depth > 60) return "tojson: nested deeper than 60";
  const auto line = [&](int level) {
    if (!style.indent) return;
    out += '\n';
    for (int i = 0; i < level && out.size() <= limit; ++i) out += *style.indent;
  };
  if (v.is_none()) {
    out += "null";
  } else if (const bool* b = v.boolean()) {
    out += *b ? "true" : "false";
  } else if (v.is_int()) {
    out += std::to_string(*v.integer());
  } else if (v.is_float()) {
    const double d = *v.number();
    out += std::isnan(d) ? "NaN" : std::isinf(d) ? (d < 0 ? "-Infinity" : "Infinity") : float_text(d);
  } else if (v.string()) {
    append_json_string(out, *v.string(), style.ensure_ascii);
  } else if (v.list()) {
    const auto& items = v.list()->items;
    out += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += style.item_separator;
      line(depth + 1);
      if (auto problem = append_json(out, items[i], style, limit, depth + 1)) return problem;
      if (out.size() > limit) return std::nullopt;
    }
    if (!items.empty()) line(depth);
    out += ']';
  } else if (v.dict()) {
    std::vector<const std::pair<std::string, Value>*> items;
    for (const auto& item : v.dict()->items) items.push_back(&item);
    if (style.sort_keys) std::stable_sort(items.begin(), items.end(), [](const auto* x, const auto* y) { return x->first < y->first; });
    out += '{';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += style.item_separator;
      line(depth + 1);
      append_json_string(out, items[i]->first, style.ensure_ascii);
      out += style.key_separator;
      if (auto problem = append_json(out, items[i]->second, style, limit, depth + 1)) return problem;
      if (out.size() > limit) return std::nullopt;
    }
    if (!items.empty()) line(depth);
    out += '}';
  } else {
    return "tojson: " + type_name(v) + " has no form in JSON";
  }
  return std::nullopt;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = utf8::next(text, at).size;
    result.push_back(text.substr(at, size));
    at += size;
  }
  return result;
}

bool is_python_space(char32_t c) { return unicode::is_space(c) || (c >= 0x1C && c <= 0x1F); }

std::string upper(std::string_view text) {
  std::string out(text);
  unicode::uppercase(out);
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  unicode::lowercase(out);
  return out;
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return {};
  const std::size_t first = utf8::next(text, 0).size;
  return upper(text.substr(0, first)) + lower(text.substr(first));
}

std::string_view strip(std::string_view text, const std::optional<std::string>& chars, bool left, bool right) {
  const std::vector<std::string_view> set = chars ? characters(*chars) : std::vector<std::string_view>();
  const auto goes = [&](const utf8::Character& c, std::string_view bytes) {
    return chars ? std::find(set.begin(), set.end(), bytes) != set.end() : is_python_space(c.code);
  };
  while (left && !text.empty()) {
    const utf8::Character c = utf8::next(text, 0);
    if (!goes(c, text.substr(0, c.size))) break;
    text.remove_prefix(c.size);
  }
  while (right && !text.empty()) {
    const utf8::Character c = utf8::previous(text, text.size());
    if (!goes(c, text.substr(text.size() - c.size))) break;
    text.remove_suffix(c.size);
  }
  return text;
}

}  // namespace modelc::chat
