// Signs, functions, tests and methods.
#include <algorithm>
#include <cmath>
#include <ctime>

#include "runtime/base/strings.h"
#include "runtime/chat/interpreter.h"
#include "runtime/tokenizer/unicode.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc::chat {

namespace {

bool all_characters(std::string_view text, bool (*holds)(char32_t)) {
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    if (!holds(c.code)) return false;
    at += c.size;
  }
  return !text.empty();
}

// Whether letters with case are all of one case, and there is one.
bool is_case(std::string_view text, bool upper_case) {
  const std::string folded = upper_case ? upper(text) : lower(text);
  return folded == text && (upper_case ? lower(text) : upper(text)) != text;
}

}  // namespace

bool Interpreter::contains(Place place, const Value& where, const Value& what) {
  if (where.string()) {
    if (!what.string()) {
      fail(place, "`in` a string: expected a string to look for, found " + type_name(what));
      return false;
    }
    work(place, where.string()->size() / 16);
    return where.string()->find(*what.string()) != std::string::npos;
  }
  if (where.list()) {
    work(place, where.list()->items.size());
    return std::any_of(where.list()->items.begin(), where.list()->items.end(), [&](const Value& v) { return equal(v, what); });
  }
  if (where.dict()) return what.string() && where.dict()->find(*what.string());
  if (!where.is_undefined()) fail(place, "`in` " + type_name(where) + ": expected a string, list or mapping");
  return false;
}

Value Interpreter::binary(Place place, const std::string& sign, const Value& left, const Value& right) {
  if (sign == "~") {
    std::string out = text(place, left) + text(place, right);
    if (out.size() > text_limit()) return fail(place, "a text is longer than " + human_bytes(text_limit()), "template-limit");
    return out;
  }
  const auto wrong = [&] {
    return fail(place, "`" + sign + "` between " + type_name(left) + " and " + type_name(right) + " has no meaning", "template-error",
                sign == "+" && (left.string() || right.string()) ? "`~` joins the texts of any two values" : "");
  };
  if (sign == "+" && left.string() && right.string()) return binary(place, "~", left, right);
  if (sign == "+" && left.list() && right.list() && left.list()->is_tuple == right.list()->is_tuple) {
    std::vector<Value> all = left.list()->items;
    if (!work(place, all.size() + right.list()->items.size())) return {};
    all.insert(all.end(), right.list()->items.begin(), right.list()->items.end());
    return make_list(std::move(all), left.list()->is_tuple);
  }
  if (sign == "*" && (left.string() || left.list() || right.string() || right.list())) {
    const bool turned = !(left.string() || left.list());
    const Value& what = turned ? right : left;
    const auto times = (turned ? left : right).integer();
    if (!times) return wrong();
    const std::size_t size = what.string() ? what.string()->size() : what.list()->items.size();
    const std::size_t limit = what.string() ? text_limit() : std::size_t{1'000'000};
    if (size > 0 && *times > 0 && static_cast<std::uint64_t>(*times) > limit / size)
      return fail(place, "`*` makes something too long", "template-limit");
    std::string out;
    std::vector<Value> all;
    for (std::int64_t i = 0; size > 0 && i < *times && work(place, 1 + size / 16); ++i) {
      if (what.string()) out += *what.string();
      else all.insert(all.end(), what.list()->items.begin(), what.list()->items.end());
    }
    if (what.string()) return out;
    return make_list(std::move(all), what.list()->is_tuple);
  }
  if (sign == "%" && left.string())
    return fail(place, "`%` that fills in a string is not carried out", "template-unsupported", "`~` joins texts");
  if (!left.is_number() || !right.is_number()) return wrong();
  const auto a = left.integer(), b = right.integer();
  const double x = *left.number(), y = *right.number();
  if ((sign == "/" || sign == "//" || sign == "%") && y == 0) return fail(place, "division by zero");
  if (sign == "/") return x / y;
  if (a && b) {
    std::int64_t result = 0;
    bool overflow = false;
    if (sign == "+") overflow = __builtin_add_overflow(*a, *b, &result);
    if (sign == "-") overflow = __builtin_sub_overflow(*a, *b, &result);
    if (sign == "*") overflow = __builtin_mul_overflow(*a, *b, &result);
    if (sign == "//" || sign == "%") {
      if (*b == -1) {  // the one division that overflows
        if (sign == "//") overflow = __builtin_sub_overflow(std::int64_t{0}, *a, &result);
      } else {
        const std::int64_t quotient = *a / *b, rest = *a % *b;
        const bool down = rest != 0 && (rest < 0) != (*b < 0);  // towards minus infinity
        result = sign == "//" ? quotient - (down ? 1 : 0) : rest + (down ? *b : 0);
      }
    }
    if (sign == "**") {
      if (*b < 0) return std::pow(x, y);
      result = 1;
      for (std::int64_t i = 0; i < *b && !overflow && work(place, 1); ++i) {
        if (result == 0 || (*a == 1)) break;
        overflow = __builtin_mul_overflow(result, *a, &result);
      }
    }
    if (overflow) return fail(place, "`" + sign + "` gives a whole number of more than 64 bits", "template-limit");
    return result;
  }
  if (sign == "+") return x + y;
  if (sign == "-") return x - y;
  if (sign == "*") return x * y;
  if (sign == "//") return std::floor(x / y);
  if (sign == "**") return std::pow(x, y);
  const double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

Value Interpreter::global(const std::string& name) {
  const auto function = [&](std::function<Value(const Call&)> body) {
    return Value(std::make_shared<Callable>(Callable{name, std::move(body)}));
  };
  if (name == "raise_exception")
    return function([](const Call& c) {
      c.only({"message"});
      const Value* message = c.find(0, "message");
      return c.in.fail(c.place, "the template refuses: " + (message ? to_text(*message, 2000) : std::string("no reason given")),
                       "template-raised");
    });
  if (name == "strftime_now")
    return function([](const Call& c) -> Value {
      const Value* format = c.only({"format"}) ? c.find(0, "format") : nullptr;
      if (!format || !format->string()) return c.in.fail(c.place, "strftime_now() takes a format, as in \"%d %b %Y\"");
      if (format->string()->empty()) return Value("");
      const std::time_t now = c.in.options().now.value_or(std::time(nullptr));
      std::tm local{};
      localtime_r(&now, &local);
      char buffer[512];
      const std::size_t size = std::strftime(buffer, sizeof buffer, format->string()->c_str(), &local);
      if (size == 0) return c.in.fail(c.place, "strftime_now(): the date has more than 500 characters");
      return Value(std::string(buffer, size));
    });
  if (name == "namespace")
    return function([](const Call& c) -> Value {
      auto space = c.in.new_namespace();
      if (c.arguments.size() > 1 || (c.arguments.size() == 1 && !c.arguments[0].dict()))
        return c.in.fail(c.place, "namespace() takes names with values, or one mapping");
      if (c.arguments.size() == 1) space->members = *c.arguments[0].dict();
      for (const auto& [key, value] : c.named) space->members.set(key, value);
      return space;
    });
  if (name == "dict")
    return function([](const Call& c) -> Value {
      auto dict = std::make_shared<Dict>();
      if (c.arguments.size() > 1 || (c.arguments.size() == 1 && !c.arguments[0].dict()))
        return c.in.fail(c.place, "dict() takes names with values, or one mapping");
      if (c.arguments.size() == 1) *dict = *c.arguments[0].dict();
      for (const auto& [key, value] : c.named) dict->set(key, value);
      return dict;
    });
  if (name == "range")
    return function([](const Call& c) -> Value {
      constexpr std::int64_t most = 100'000;
      if (!c.only({"start", "stop", "step"}, 3)) return {};
      std::vector<std::int64_t> numbers;
      for (const Value& v : c.arguments) {
        if (!v.integer()) return c.in.fail(c.place, "range() takes whole numbers, not " + type_name(v));
        numbers.push_back(*v.integer());
      }
      if (numbers.empty()) return c.in.fail(c.place, "range() takes one to three whole numbers");
      if (numbers.size() == 1) numbers.insert(numbers.begin(), 0);
      if (numbers.size() == 2) numbers.push_back(1);
      if (numbers[2] == 0) return c.in.fail(c.place, "range() with a step of 0");
      std::vector<Value> values;
      for (std::int64_t i = numbers[0]; numbers[2] > 0 ? i < numbers[1] : i > numbers[1];) {
        if (static_cast<std::int64_t>(values.size()) >= most)
          return c.in.fail(c.place, "range() gives more than 100,000 numbers", "template-limit");
        values.emplace_back(i);
        if (__builtin_add_overflow(i, numbers[2], &i)) break;
      }
      c.in.work(c.place, values.size());
      return make_list(std::move(values));
    });
  for (const char* known : {"lipsum", "cycler", "joiner"})
    if (name == known)
      return function(
          [](const Call& c) { return c.in.fail(c.place, "the function `" + c.name + "` is not carried out", "template-unsupported"); });
  return Undefined{name};
}

std::optional<bool> Interpreter::call_test(const Call& c) {
  const Value& v = c.arguments[0];
  const auto alone = [&] { return c.only({"value"}, 1); };
  const auto other = [&]() -> const Value* {
    const Value* found = c.only({"value", "other"}, 1) ? c.find(1, "other") : nullptr;
    if (!found) fail(c.place, "the test `" + c.name + "` takes a value to compare with");
    return found;
  };
  const std::string& n = c.name;
  if (n == "defined") return alone() && !v.is_undefined();
  if (n == "undefined") return alone() && v.is_undefined();
  if (n == "none") return alone() && v.is_none();
  if (n == "string") return alone() && v.string();
  if (n == "number") return alone() && v.is_number();
  if (n == "integer") return alone() && v.is_int();
  if (n == "float") return alone() && v.is_float();
  if (n == "boolean") return alone() && v.is_bool();
  if (n == "true") return alone() && v.boolean() && *v.boolean();
  if (n == "false") return alone() && v.boolean() && !*v.boolean();
  if (n == "mapping") return alone() && v.dict();
  if (n == "sequence") return alone() && (v.list() || v.string() || v.dict() || v.is_undefined());
  if (n == "iterable") return alone() && (v.list() || v.string() || v.dict() || v.is_undefined());
  if (n == "callable") return alone() && v.callable();
  if (n == "lower") return alone() && is_case(text(c.place, v), false);
  if (n == "upper") return alone() && is_case(text(c.place, v), true);
  if (n == "escaped") return alone() && false;
  if (n == "odd" || n == "even") {
    const auto whole = v.integer();
    if (!whole) fail(c.place, "the test `" + n + "` of " + type_name(v));
    return alone() && whole && (*whole % 2 != 0) == (n == "odd");
  }
  if (n == "divisibleby") {
    const Value* by = other();
    if (!by) return false;
    if (!v.integer() || !by->integer() || *by->integer() == 0) fail(c.place, "the test `divisibleby` takes whole numbers, not 0");
    return ok() && (*by->integer() == -1 || *v.integer() % *by->integer() == 0);
  }
  if (n == "sameas") {
    const Value* with = other();
    return with && v.same(*with);
  }
  if (n == "in") {
    const Value* where = other();
    return where && contains(c.place, *where, v);
  }
  if (n == "equalto" || n == "eq" || n == "==" || n == "ne" || n == "!=") {
    const Value* with = other();
    return with && equal(v, *with) == (n[0] == 'e' || n[0] == '=');
  }
  constexpr std::pair<std::string_view, std::string_view> orders[] = {{"lt", "<"}, {"lessthan", "<"},    {"le", "<="},
                                                                      {"gt", ">"}, {"greaterthan", ">"}, {"ge", ">="}};
  for (const auto& [word, sign] : orders) {
    if (n != word && n != sign) continue;
    const Value* with = other();
    if (!with) return false;
    const auto order = compare(v, *with);
    if (!order) fail(c.place, "the test `" + n + "` between " + type_name(v) + " and " + type_name(*with) + " has no meaning");
    return order && (sign == "<" ? *order < 0 : sign == "<=" ? *order <= 0 : sign == ">" ? *order > 0 : *order >= 0);
  }
  return std::nullopt;
}

bool Interpreter::is_method(const Value& object, std::string_view name) {
  constexpr std::string_view of_strings[] = {
      "capitalize",   "casefold",   "center",    "count",       "encode",    "endswith",     "expandtabs",   "find",
      "format",       "format_map", "index",     "isalnum",     "isalpha",   "isascii",      "isdecimal",    "isdigit",
      "isidentifier", "islower",    "isnumeric", "isprintable", "isspace",   "istitle",      "isupper",      "join",
      "ljust",        "lower",      "lstrip",    "maketrans",   "partition", "removeprefix", "removesuffix", "replace",
      "rfind",        "rindex",     "rjust",     "rpartition",  "rsplit",    "rstrip",       "split",        "splitlines",
      "startswith",   "strip",      "swapcase",  "title",       "translate", "upper",        "zfill"};
  constexpr std::string_view of_lists[] = {"append", "clear", "copy",   "count",   "extend", "index",
                                           "insert", "pop",   "remove", "reverse", "sort"};
  constexpr std::string_view of_dicts[] = {"clear", "copy",    "fromkeys",   "get",    "items", "keys",
                                           "pop",   "popitem", "setdefault", "update", "values"};
  const auto among = [&](const auto& names) { return std::find(std::begin(names), std::end(names), name) != std::end(names); };
  return object.string() ? among(of_strings) : object.list() ? among(of_lists) : object.dict() && among(of_dicts);
}

namespace {

std::optional<Value> dict_method(Dict& dict, const Call& c) {
  if (c.name == "get") {
    if (!c.only({"key", "default"}, 2)) return Value();
    const Value* key = c.find(0, "key");
    if (!key) return c.in.fail(c.place, "get() takes a key");
    const Value* found = key->string() ? dict.find(*key->string()) : nullptr;
    const Value* otherwise = c.find(1, "default");
    return found ? *found : otherwise ? *otherwise : Value(None{});
  }
  if (c.name != "items" && c.name != "keys" && c.name != "values") return std::nullopt;
  std::vector<Value> all;
  c.in.work(c.place, dict.items.size());
  for (const auto& [key, value] : dict.items)
    all.push_back(c.name == "items" ? make_list({Value(key), value}, true) : c.name == "keys" ? Value(key) : value);
  return make_list(std::move(all));
}

std::optional<Value> list_method(const List& list, const Call& c) {
  if (c.name != "index" && c.name != "count") return std::nullopt;
  if (c.arguments.size() != 1) return c.in.fail(c.place, c.name + "() takes one value");
  std::int64_t count = 0;
  c.in.work(c.place, list.items.size());
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (!equal(list.items[i], c.arguments[0])) continue;
    if (c.name == "index") return static_cast<std::int64_t>(i);
    ++count;
  }
  if (c.name == "index") return c.in.fail(c.place, "index(): the list does not have it");
  return count;
}

// str.split and rsplit. Without a separator at white space, of which none is left.
std::vector<Value> split_text(std::string_view text, const std::optional<std::string>& separator, std::int64_t most, bool right) {
  std::vector<Value> parts;
  const auto full = [&] { return most >= 0 && static_cast<std::int64_t>(parts.size()) >= most; };
  if (separator) {
    while (!full()) {
      const std::size_t at = right ? text.rfind(*separator) : text.find(*separator);
      if (at == std::string_view::npos) break;
      parts.emplace_back(right ? text.substr(at + separator->size()) : text.substr(0, at));
      text = right ? text.substr(0, at) : text.substr(at + separator->size());
    }
    parts.emplace_back(text);
  } else {
    while (true) {
      text = strip(text, std::nullopt, !right, right);
      if (text.empty()) break;
      if (full()) {
        parts.emplace_back(text);
        break;
      }
      std::size_t at = right ? text.size() : 0;
      while (right ? at > 0 : at < text.size()) {
        const utf8::Character c = right ? utf8::previous(text, at) : utf8::next(text, at);
        if (is_python_space(c.code)) break;
        at = right ? at - c.size : at + c.size;
      }
      parts.emplace_back(right ? text.substr(at) : text.substr(0, at));
      text = right ? text.substr(0, at) : text.substr(at);
    }
  }
  if (right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Value> lines_of(std::string_view text, bool keep_ends) {
  std::vector<Value> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    const std::size_t end = at;
    at += c.size;
    const bool ends =
        (c.code >= 0xA && c.code <= 0xD) || (c.code >= 0x1C && c.code <= 0x1E) || c.code == 0x85 || c.code == 0x2028 || c.code == 0x2029;
    if (!ends) continue;
    if (c.code == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

// Each letter after another character than a letter large, the others small.
std::string title(std::string_view text) {
  std::string out;
  bool inside = false;
  for (const std::string_view c : characters(text)) {
    const bool letter = upper(c) != c || lower(c) != c;
    out += inside ? lower(c) : upper(c);
    inside = letter;
  }
  return out;
}

bool is_letter(char32_t c) { return unicode::category(c)[0] == 'L'; }
bool is_decimal(char32_t c) { return unicode::category(c) == "Nd"; }
bool is_letter_or_number(char32_t c) { return is_letter(c) || unicode::category(c)[0] == 'N'; }

std::optional<Value> string_method(const std::string& s, const Call& c) {
  const std::string& n = c.name;
  Interpreter& in = c.in;
  in.work(c.place, s.size() / 8);
  // The argument as a string; none and a missing one are nothing.
  const auto string_at = [&](std::size_t i, std::string_view name) -> std::optional<std::string> {
    const Value* v = c.find(i, name);
    if (!v || v->is_none()) return std::nullopt;
    if (!v->string()) in.fail(c.place, n + "(): expected a string, found " + type_name(*v));
    return v->string() ? *v->string() : std::string();
  };
  const auto needed = [&](std::size_t i, std::string_view name) {
    const auto text = string_at(i, name);
    if (!text) in.fail(c.place, n + "() takes a string");
    return text.value_or("");
  };
  const auto whole_at = [&](std::size_t i, std::string_view name, std::int64_t otherwise) {
    const Value* v = c.find(i, name);
    if (!v) return otherwise;
    if (!v->integer()) in.fail(c.place, n + "(): expected a whole number, found " + type_name(*v));
    return v->integer().value_or(otherwise);
  };
  if (n == "upper" || n == "lower" || n == "capitalize" || n == "title" || n == "isdigit" || n == "isalpha" || n == "isalnum" ||
      n == "isspace" || n == "isupper" || n == "islower") {
    if (!c.only({})) return Value();
    if (n == "upper") return upper(s);
    if (n == "lower") return lower(s);
    if (n == "capitalize") return capitalized(s);
    if (n == "title") return title(s);
    if (n == "isdigit") return all_characters(s, is_decimal);
    if (n == "isalpha") return all_characters(s, is_letter);
    if (n == "isalnum") return all_characters(s, is_letter_or_number);
    if (n == "isspace") return all_characters(s, is_python_space);
    return is_case(s, n == "isupper");
  }
  if (n == "strip" || n == "lstrip" || n == "rstrip") {
    if (!c.only({"chars"}, 1)) return Value();
    return Value(strip(s, string_at(0, "chars"), n != "rstrip", n != "lstrip"));
  }
  if (n == "split" || n == "rsplit") {
    if (!c.only({"sep", "maxsplit"})) return Value();
    const auto separator = string_at(0, "sep");
    if (separator && separator->empty()) return in.fail(c.place, n + "() at an empty string");
    std::vector<Value> parts = split_text(s, separator, whole_at(1, "maxsplit", -1), n == "rsplit");
    in.work(c.place, parts.size());
    return make_list(std::move(parts));
  }
  if (n == "splitlines") {
    if (!c.only({"keepends"})) return Value();
    const Value* keep = c.find(0, "keepends");
    return make_list(lines_of(s, keep && truth(*keep)));
  }
  if (n == "startswith" || n == "endswith") {
    if (!c.only({"prefix"}, 1) || c.arguments.empty()) return in.fail(c.place, n + "() takes a string or a tuple of strings");
    std::vector<Value> options = {c.arguments[0]};
    if (const List* list = c.arguments[0].list()) options = list->items;
    for (const Value& option : options) {
      if (!option.string()) return in.fail(c.place, n + "(): expected a string, found " + type_name(option));
      if (n == "startswith" ? s.starts_with(*option.string()) : s.ends_with(*option.string())) return true;
    }
    return false;
  }
  if (n == "removeprefix" || n == "removesuffix") {
    if (!c.only({"affix"}, 1)) return Value();
    const std::string affix = needed(0, "affix");
    if (n == "removeprefix") return s.starts_with(affix) ? s.substr(affix.size()) : s;
    return s.ends_with(affix) ? s.substr(0, s.size() - affix.size()) : s;
  }
  if (n == "replace") {
    if (!c.only({"old", "new", "count"}, 2)) return Value();
    Call filter{in, c.place, "replace", {Value(s)}, c.named};
    filter.arguments.insert(filter.arguments.end(), c.arguments.begin(), c.arguments.end());
    return in.call_filter(filter);
  }
  if (n == "join") {
    if (!c.only({"iterable"}, 1) || c.arguments.empty()) return in.fail(c.place, "join() takes a list of strings");
    std::string out;
    bool first = true;
    for (const Value& v : in.items(c.place, c.arguments[0])) {
      if (!v.string()) return in.fail(c.place, "join(): expected strings, found " + type_name(v));
      if (!first) out += s;
      first = false;
      out += *v.string();
      if (out.size() > in.text_limit()) return in.fail(c.place, "join() makes too long a text", "template-limit");
    }
    return out;
  }
  if (n == "find" || n == "rfind" || n == "index" || n == "rindex" || n == "count") {
    if (!c.only({"sub"}, 1)) return Value();
    const std::string sub = needed(0, "sub");
    if (n == "count") {
      if (sub.empty()) return static_cast<std::int64_t>(utf8::count(s) + 1);
      std::int64_t count = 0;
      for (std::size_t at = 0; (at = s.find(sub, at)) != std::string::npos; at += sub.size()) ++count;
      return count;
    }
    const std::size_t at = n[0] == 'r' ? s.rfind(sub) : s.find(sub);
    if (at != std::string::npos) return static_cast<std::int64_t>(utf8::count(std::string_view(s).substr(0, at)));
    if (n.ends_with("index")) return in.fail(c.place, n + "(): the string does not have it");
    return std::int64_t{-1};
  }
  if (n == "zfill" || n == "ljust" || n == "rjust" || n == "center") {
    if (!c.only({"width", "fillchar"}, 2)) return Value();
    const std::string fill = n == "zfill" ? "0" : string_at(1, "fillchar").value_or(" ");
    const std::int64_t missing = whole_at(0, "width", 0) - static_cast<std::int64_t>(utf8::count(s));
    if (fill.empty() || utf8::next(fill, 0).size != fill.size()) return in.fail(c.place, n + "() fills with one character");
    if (missing <= 0) return s;
    if (static_cast<std::uint64_t>(missing) > in.text_limit() / fill.size())
      return in.fail(c.place, n + "() makes too long a text", "template-limit");
    // Of an odd number the larger half stands where the width and it say: str.center's own rule.
    std::int64_t left = n == "ljust" ? 0 : missing;
    if (n == "center") left = missing / 2 + (missing & (whole_at(0, "width", 0)) & 1);
    std::string before, after;
    for (std::int64_t i = 0; i < missing; ++i) (i < left ? before : after) += fill;
    if (n == "zfill" && (s.starts_with('-') || s.starts_with('+'))) return s.substr(0, 1) + before + s.substr(1);
    return before + s + after;
  }
  if (n == "partition" || n == "rpartition") {
    if (!c.only({"sep"}, 1)) return Value();
    const std::string separator = needed(0, "sep");
    if (separator.empty()) return in.fail(c.place, n + "() at an empty string");
    const std::size_t at = n[0] == 'r' ? s.rfind(separator) : s.find(separator);
    if (at == std::string::npos)
      return n[0] == 'r' ? make_list({Value(""), Value(""), Value(s)}, true) : make_list({Value(s), Value(""), Value("")}, true);
    return make_list({Value(s.substr(0, at)), Value(separator), Value(s.substr(at + separator.size()))}, true);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Value> Interpreter::call_method(const Value& object, const Call& call) {
  if (!ok()) return Value();
  if (object.string()) return string_method(*object.string(), call);
  if (object.list()) return list_method(*object.list(), call);
  return dict_method(*object.dict(), call);
}

}  // namespace modelc::chat
