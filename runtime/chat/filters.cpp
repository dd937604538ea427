// The filters: value | name(arguments).
#include <algorithm>
#include <cmath>

#include "runtime/base/strings.h"
#include "runtime/chat/interpreter.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc::chat {

namespace {

using Filter = Value (*)(Interpreter& in, const Call& c);

std::string text_of(const Call& c) { return c.in.text(c.place, c.arguments[0]); }
Value too_long(const Call& c) { return c.in.fail(c.place, c.name + " makes too long a text", "template-limit"); }

std::optional<std::int64_t> whole(const Call& c, std::size_t at, std::string_view name, std::int64_t otherwise) {
  const Value* v = c.find(at, name);
  if (!v) return otherwise;
  if (!v->integer()) c.in.fail(c.place, c.name + ": `" + std::string(name) + "` is " + type_name(*v) + ", expected a whole number");
  return v->integer();
}
bool flag(const Call& c, std::size_t at, std::string_view name, bool otherwise) {
  const Value* v = c.find(at, name);
  return v ? truth(*v) : otherwise;
}

// "a.b.0": the way from an item to what counts of it.
Value along(Interpreter& in, const Call& c, Value value, const Value& path) {
  if (!path.string()) return in.item(c.place, value, path);
  for (const std::string_view part : split(*path.string(), '.')) {
    const auto index = parse_int(part);
    value = in.item(c.place, value, index ? Value(*index) : Value(part));
  }
  return value;
}

Value folded(const Value& value) { return value.string() ? Value(lower(*value.string())) : value; }

Value trim(Interpreter&, const Call& c) {
  if (!c.only({"value", "chars"}, 1)) return {};
  const std::string text = text_of(c);
  const Value* chars = c.find(1, "chars");
  std::optional<std::string> set;
  if (chars && chars->string()) set = *chars->string();
  return Value(strip(text, set, true, true));
}

Value tojson(Interpreter& in, const Call& c) {
  if (!c.only({"value", "ensure_ascii", "indent", "separators", "sort_keys"}, 1)) return {};
  JsonStyle style;
  style.ensure_ascii = flag(c, 1, "ensure_ascii", false);
  style.sort_keys = flag(c, 4, "sort_keys", false);
  if (const Value* indent = c.find(2, "indent"); indent && !indent->is_none()) {
    if (indent->string()) style.indent = *indent->string();
    else if (indent->integer())
      style.indent = std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(*indent->integer(), 0, 64)), ' ');
    else return in.fail(c.place, "tojson: `indent` is " + type_name(*indent) + ", expected a whole number or string");
    style.item_separator = ",";
  }
  if (const Value* separators = c.find(3, "separators"); separators && !separators->is_none()) {
    const List* pair = separators->list();
    if (!pair || pair->items.size() != 2 || !pair->items[0].string() || !pair->items[1].string())
      return in.fail(c.place, "tojson: `separators` is " + type_name(*separators) + ", expected two strings");
    style.item_separator = *pair->items[0].string();
    style.key_separator = *pair->items[1].string();
  }
  std::string out;
  if (const auto problem = append_json(out, c.arguments[0], style, in.text_limit())) return in.fail(c.place, *problem);
  if (out.size() > in.text_limit()) return too_long(c);
  in.work(c.place, out.size() / 8);
  return out;
}

Value length(Interpreter& in, const Call& c) {
  if (!c.only({"value"}, 1)) return {};
  const Value& v = c.arguments[0];
  if (v.string()) return static_cast<std::int64_t>(utf8::count(*v.string()));
  if (v.list()) return static_cast<std::int64_t>(v.list()->items.size());
  if (v.dict()) return static_cast<std::int64_t>(v.dict()->items.size());
  if (v.is_undefined()) return std::int64_t{0};
  return in.fail(c.place, type_name(v) + " has no length");
}

Value join(Interpreter& in, const Call& c) {
  if (!c.only({"value", "d", "attribute"}, 1)) return {};
  const Value* between = c.find(1, "d");
  const Value* attribute = c.find(2, "attribute");
  const std::string separator = between ? in.text(c.place, *between) : "";
  std::string out;
  bool first = true;
  for (const Value& v : in.items(c.place, c.arguments[0])) {
    if (!first) out += separator;
    first = false;
    out += in.text(c.place, attribute && !attribute->is_none() ? along(in, c, v, *attribute) : v);
    if (out.size() > in.text_limit()) return too_long(c);
    if (!in.ok()) return {};
  }
  return out;
}

Value default_(Interpreter&, const Call& c) {
  if (!c.only({"value", "default_value", "boolean"}, 1)) return {};
  const Value& v = c.arguments[0];
  const bool taken = v.is_undefined() || (flag(c, 2, "boolean", false) && !truth(v));
  if (!taken) return v;
  const Value* otherwise = c.find(1, "default_value");
  return otherwise ? *otherwise : Value("");
}

Value first_or_last(Interpreter& in, const Call& c) {
  if (!c.only({"value"}, 1)) return {};
  const std::vector<Value> all = in.items(c.place, c.arguments[0]);
  if (all.empty()) return Undefined{"the " + c.name + " item of nothing"};
  return c.name == "first" ? all.front() : all.back();
}

Value letters(Interpreter&, const Call& c) {
  if (!c.only({"value"}, 1)) return {};
  const std::string text = text_of(c);
  if (c.name == "upper") return upper(text);
  if (c.name == "lower") return lower(text);
  if (c.name == "capitalize") return capitalized(text);
  // title: what follows a space, a dash or an opening bracket is large.
  std::string out;
  bool begins = true;
  for (const std::string_view letter : characters(text)) {
    const bool separates = letter.find_first_of("-({[<") == 0 || is_python_space(utf8::next(letter, 0).code);
    out += begins ? upper(letter) : lower(letter);
    begins = separates;
  }
  return out;
}

Value replace(Interpreter& in, const Call& c) {
  if (!c.only({"value", "old", "new", "count"}, 1)) return {};
  const Value *from = c.find(1, "old"), *to = c.find(2, "new"), *most = c.find(3, "count");
  if (!from || !to) return in.fail(c.place, "replace takes what to replace and what to put there");
  const std::string text = text_of(c), a = in.text(c.place, *from), b = in.text(c.place, *to);
  if (!in.ok()) return {};
  std::int64_t left = most && !most->is_none() ? most->integer().value_or(-1) : -1;
  std::string out;
  std::size_t at = 0;
  if (a.empty()) {  // before each character and at the end
    for (const std::string_view letter : characters(text)) {
      if (left != 0) out += b, --left;
      out += letter;
      if (out.size() > in.text_limit()) return too_long(c);
    }
    if (left != 0) out += b;
    return out;
  }
  for (std::size_t found; left != 0 && (found = text.find(a, at)) != std::string::npos; at = found + a.size(), --left) {
    out.append(text, at, found - at).append(b);
    if (out.size() > in.text_limit()) return too_long(c);
  }
  out.append(text, at);
  return out;
}

// map, select, reject, selectattr, rejectattr
Value map(Interpreter& in, const Call& c) {
  std::vector<Value> result;
  const Value *attribute = nullptr, *otherwise = nullptr;
  for (const auto& [name, value] : c.named) {
    if (name == "attribute") attribute = &value;
    if (name == "default") otherwise = &value;
  }
  if (!attribute && (c.arguments.size() < 2 || !c.arguments[1].string()))
    return in.fail(c.place, "map takes the name of a filter, or attribute=");
  for (const auto& [name, value] : c.named)
    if (attribute && name != "attribute" && name != "default")
      return in.fail(c.place, "map has no argument `" + printable(name) + "` beside `attribute`", "template-unsupported");
  for (const Value& v : in.items(c.place, c.arguments[0])) {
    if (!in.ok()) return {};
    if (attribute) {
      Value found = along(in, c, v, *attribute);
      result.push_back(found.is_undefined() && otherwise ? *otherwise : found);
    } else {
      Call inner{in, c.place, *c.arguments[1].string(), {v}, c.named};
      inner.arguments.insert(inner.arguments.end(), c.arguments.begin() + 2, c.arguments.end());
      result.push_back(in.call_filter(inner));
    }
  }
  return make_list(std::move(result));
}

Value select(Interpreter& in, const Call& c) {
  const bool by_attribute = c.name.ends_with("attr"), rejects = c.name.starts_with("reject");
  const std::size_t test_at = by_attribute ? 2 : 1;
  if (by_attribute && c.arguments.size() < 2) return in.fail(c.place, c.name + " takes the name of an attribute");
  if (c.arguments.size() > test_at && !c.arguments[test_at].string())
    return in.fail(c.place, c.name + ": the name of the test is " + type_name(c.arguments[test_at]));
  std::vector<Value> result;
  for (const Value& v : in.items(c.place, c.arguments[0])) {
    if (!in.ok()) return {};
    const Value what = by_attribute ? along(in, c, v, c.arguments[1]) : v;
    bool holds = truth(what);
    if (c.arguments.size() > test_at) {
      Call inner{in, c.place, *c.arguments[test_at].string(), {what}, c.named};
      inner.arguments.insert(inner.arguments.end(), c.arguments.begin() + static_cast<std::ptrdiff_t>(test_at) + 1, c.arguments.end());
      const auto tested = in.call_test(inner);
      if (!tested) return in.fail(c.place, "the test `" + printable(inner.name) + "` is not carried out", "template-unsupported");
      holds = *tested;
    }
    if (holds != rejects) result.push_back(v);
  }
  return make_list(std::move(result));
}

Value items(Interpreter& in, const Call& c) {
  if (!c.only({"value"}, 1)) return {};
  if (c.arguments[0].is_undefined()) return make_list({});
  if (!c.arguments[0].dict()) return in.fail(c.place, "items of " + type_name(c.arguments[0]) + ": expected a mapping");
  return *in.call_method(c.arguments[0], Call{in, c.place, "items", {}, {}});
}

// Orders by keys; fails where two of them have no order.
bool sort_by(Interpreter& in, const Call& c, std::vector<std::pair<Value, Value>>& rows, bool reverse) {
  if (rows.size() > 1 && !in.work(c.place, rows.size() * 16)) return false;
  bool ordered = true;
  // What has no order is found first, as the sort needs a whole one.
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (!compare(rows[0].first, rows[i].first)) ordered = false;
  if (!ordered || std::any_of(rows.begin(), rows.end(),
                              [](const auto& r) { return r.first.list() || (r.first.is_float() && std::isnan(*r.first.number())); })) {
    in.fail(c.place, c.name + ": the values have no order");
    return false;
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    const int order = compare(a.first, b.first).value_or(0);
    return reverse ? order > 0 : order < 0;
  });
  return true;
}

Value dictsort(Interpreter& in, const Call& c) {
  if (!c.only({"value", "case_sensitive", "by", "reverse"}, 1)) return {};
  if (!c.arguments[0].dict()) return in.fail(c.place, "dictsort of " + type_name(c.arguments[0]) + ": expected a mapping");
  const Value* by = c.find(2, "by");
  const bool by_value = by && by->string() && *by->string() == "value";
  std::vector<std::pair<Value, Value>> rows;
  for (const auto& [key, value] : c.arguments[0].dict()->items) {
    Value order = by_value ? value : Value(key);
    rows.emplace_back(flag(c, 1, "case_sensitive", false) ? order : folded(order), make_list({Value(key), value}, true));
  }
  if (!sort_by(in, c, rows, flag(c, 3, "reverse", false))) return {};
  std::vector<Value> result;
  for (auto& row : rows) result.push_back(std::move(row.second));
  return make_list(std::move(result));
}

Value sort(Interpreter& in, const Call& c) {
  if (!c.only({"value", "reverse", "case_sensitive", "attribute"}, 1)) return {};
  const Value* attribute = c.find(3, "attribute");
  std::vector<std::pair<Value, Value>> rows;
  for (const Value& v : in.items(c.place, c.arguments[0])) {
    const Value key = attribute && !attribute->is_none() ? along(in, c, v, *attribute) : v;
    rows.emplace_back(flag(c, 2, "case_sensitive", false) ? key : folded(key), v);
  }
  if (!in.ok() || !sort_by(in, c, rows, flag(c, 1, "reverse", false))) return {};
  std::vector<Value> result;
  for (auto& row : rows) result.push_back(std::move(row.second));
  return make_list(std::move(result));
}

Value unique(Interpreter& in, const Call& c) {
  if (!c.only({"value", "case_sensitive", "attribute"}, 1)) return {};
  const Value* attribute = c.find(2, "attribute");
  std::vector<Value> result, seen;
  for (const Value& v : in.items(c.place, c.arguments[0])) {
    Value key = attribute && !attribute->is_none() ? along(in, c, v, *attribute) : v;
    if (!flag(c, 1, "case_sensitive", false)) key = folded(key);
    if (!in.work(c.place, seen.size() + 1)) return {};
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& s) { return equal(s, key); })) continue;
    seen.push_back(key);
    result.push_back(v);
  }
  return make_list(std::move(result));
}

Value min_or_max(Interpreter& in, const Call& c) {
  if (!c.only({"value", "case_sensitive", "attribute"}, 1)) return {};
  const Value* attribute = c.find(2, "attribute");
  std::optional<std::pair<Value, Value>> best;
  for (const Value& v : in.items(c.place, c.arguments[0])) {
    Value key = attribute && !attribute->is_none() ? along(in, c, v, *attribute) : v;
    if (!flag(c, 1, "case_sensitive", false)) key = folded(key);
    const auto order = best ? compare(key, best->first) : std::optional<int>(c.name == "min" ? -1 : 1);
    if (!order) return in.fail(c.place, c.name + ": the values have no order");
    if (c.name == "min" ? *order < 0 : *order > 0) best = {key, v};
  }
  return best ? best->second : Value(Undefined{"the " + c.name + " of nothing"});
}

Value sum(Interpreter& in, const Call& c) {
  if (!c.only({"value", "attribute", "start"}, 1)) return {};
  const Value *attribute = c.find(1, "attribute"), *start = c.find(2, "start");
  Value total = start ? *start : Value(std::int64_t{0});
  for (const Value& v : in.items(c.place, c.arguments[0])) {
    total = in.binary(c.place, "+", total, attribute && !attribute->is_none() ? along(in, c, v, *attribute) : v);
    if (!in.ok()) return {};
  }
  return total;
}

Value reverse(Interpreter& in, const Call& c) {
  if (!c.only({"value"}, 1)) return {};
  std::vector<Value> all = in.items(c.place, c.arguments[0]);
  std::reverse(all.begin(), all.end());
  if (!c.arguments[0].string()) return make_list(std::move(all));
  std::string out;
  for (const Value& v : all) out += *v.string();
  return out;
}

Value to_list(Interpreter& in, const Call& c) { return c.only({"value"}, 1) ? make_list(in.items(c.place, c.arguments[0])) : Value(); }

Value to_string(Interpreter&, const Call& c) { return c.only({"value"}, 1) ? Value(text_of(c)) : Value(); }
Value as_it_is(Interpreter&, const Call& c) { return c.only({"value"}, 1) ? c.arguments[0] : Value(); }

Value to_int(Interpreter& in, const Call& c) {
  if (!c.only({"value", "default", "base"}, 1)) return {};
  if (const auto base = whole(c, 2, "base", 10); base && *base != 10)
    return in.fail(c.place, "int with a base is not carried out", "template-unsupported");
  const Value& v = c.arguments[0];
  std::optional<double> number;
  if (v.integer()) return *v.integer();
  if (v.string()) {
    std::string_view text = strip(*v.string(), std::nullopt, true, true);
    if (text.starts_with('+')) text.remove_prefix(1);
    if (const auto parsed = parse_int(text)) return *parsed;
    number = parse_double(text);
  } else {
    number = v.number();
  }
  if (number && std::abs(*number) < 9.2e18) return static_cast<std::int64_t>(*number);
  const Value* otherwise = c.find(1, "default");
  return otherwise ? *otherwise : Value(std::int64_t{0});
}

Value to_float(Interpreter&, const Call& c) {
  if (!c.only({"value", "default"}, 1)) return {};
  const Value& v = c.arguments[0];
  std::optional<double> number = v.number();
  if (v.string()) number = parse_double(strip(*v.string(), std::nullopt, true, true));
  if (number) return *number;
  const Value* otherwise = c.find(1, "default");
  return otherwise ? *otherwise : Value(0.0);
}

Value absolute(Interpreter& in, const Call& c) {
  if (!c.only({"value"}, 1)) return {};
  if (const auto i = c.arguments[0].integer(); i && *i != INT64_MIN) return *i < 0 ? -*i : *i;
  if (c.arguments[0].is_float()) return std::abs(*c.arguments[0].number());
  return in.fail(c.place, "abs of " + type_name(c.arguments[0]));
}

Value round(Interpreter& in, const Call& c) {
  if (!c.only({"value", "precision", "method"}, 1)) return {};
  const auto number = c.arguments[0].number();
  const auto precision = whole(c, 1, "precision", 0);
  const Value* method = c.find(2, "method");
  const std::string how = method && method->string() ? *method->string() : "common";
  if (!number || !precision || *precision < 0 || *precision > 15) return in.fail(c.place, "round takes a number and 0 to 15 places");
  const double scale = std::pow(10.0, static_cast<double>(*precision));
  if (how == "ceil") return std::ceil(*number * scale) / scale;
  if (how == "floor") return std::floor(*number * scale) / scale;
  if (how != "common") return in.fail(c.place, "round: the method is common, ceil or floor");
  // The nearest decimal, halves to even, of the exact value: as printing does it.
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(*precision), *number);
  return parse_double(buffer).value_or(*number);
}

Value indent(Interpreter& in, const Call& c) {
  if (!c.only({"value", "width", "first", "blank"}, 1)) return {};
  std::string step(4, ' ');
  if (const Value* width = c.find(1, "width")) {
    if (width->string()) step = *width->string();
    else if (width->integer() && *width->integer() >= 0 && *width->integer() <= 1000)
      step = std::string(static_cast<std::size_t>(*width->integer()), ' ');
    else return in.fail(c.place, "indent: `width` is a number from 0 to 1000, or a string");
  }
  const bool first = flag(c, 2, "first", false), blank = flag(c, 3, "blank", false);
  const std::string text = text_of(c);
  // The last line end belongs to the text, as the reference adds one and takes it away.
  const Value lines = *in.call_method(Value(text + "\n"), Call{in, c.place, "splitlines", {}, {}});
  if (!in.ok()) return {};
  std::string out;
  bool begins = true;
  for (const Value& line : lines.list()->items) {
    if (!begins) out += '\n';
    if ((begins && first) || (!begins && (blank || !line.string()->empty()))) out += step;
    begins = false;
    out += *line.string();
    if (out.size() > in.text_limit()) return too_long(c);
  }
  return out;
}

Value batch(Interpreter& in, const Call& c) {
  if (!c.only({"value", "linecount", "fill_with"}, 1)) return {};
  const auto size = whole(c, 1, "linecount", 0);
  if (!size || *size < 1 || *size > 100'000) return in.fail(c.place, "batch takes how many items a row has");
  const Value* fill = c.find(2, "fill_with");
  std::vector<Value> rows, row;
  for (const Value& v : in.items(c.place, c.arguments[0])) {
    if (static_cast<std::int64_t>(row.size()) == *size) rows.push_back(make_list(std::exchange(row, {})));
    row.push_back(v);
  }
  while (!row.empty() && fill && !fill->is_none() && static_cast<std::int64_t>(row.size()) < *size) row.push_back(*fill);
  if (!row.empty()) rows.push_back(make_list(std::move(row)));
  return make_list(std::move(rows));
}

Value attr(Interpreter& in, const Call& c) {
  if (!c.only({"value", "name"}, 1)) return {};
  const Value* name = c.find(1, "name");
  if (!name || !name->string()) return in.fail(c.place, "attr takes a name");
  // Not the members of a mapping, as in the reference.
  if (c.arguments[0].dict() && !Interpreter::is_method(c.arguments[0], *name->string())) return Undefined{*name->string()};
  return in.attribute(c.place, c.arguments[0], *name->string());
}

Value wordcount(Interpreter& in, const Call& c) {
  if (!c.only({"value"}, 1)) return {};
  std::int64_t count = 0;
  bool inside = false;
  const std::string text = text_of(c);
  for (const std::string_view letter : characters(text)) {
    const bool word = letter.size() > 1 ? !is_python_space(utf8::next(letter, 0).code)
                                        : (std::isalnum(static_cast<unsigned char>(letter[0])) != 0 || letter[0] == '_');
    if (word && !inside) ++count;
    inside = word;
  }
  in.work(c.place, static_cast<std::size_t>(count));
  return count;
}

constexpr std::pair<std::string_view, Filter> filters[] = {{"abs", absolute},
                                                           {"attr", attr},
                                                           {"batch", batch},
                                                           {"capitalize", letters},
                                                           {"count", length},
                                                           {"d", default_},
                                                           {"default", default_},
                                                           {"dictsort", dictsort},
                                                           {"first", first_or_last},
                                                           {"float", to_float},
                                                           {"indent", indent},
                                                           {"int", to_int},
                                                           {"items", items},
                                                           {"join", join},
                                                           {"last", first_or_last},
                                                           {"length", length},
                                                           {"list", to_list},
                                                           {"lower", letters},
                                                           {"map", map},
                                                           {"max", min_or_max},
                                                           {"min", min_or_max},
                                                           {"reject", select},
                                                           {"rejectattr", select},
                                                           {"replace", replace},
                                                           {"reverse", reverse},
                                                           {"round", round},
                                                           {"safe", as_it_is},
                                                           {"select", select},
                                                           {"selectattr", select},
                                                           {"sort", sort},
                                                           {"string", to_string},
                                                           {"sum", sum},
                                                           {"title", letters},
                                                           {"tojson", tojson},
                                                           {"trim", trim},
                                                           {"unique", unique},
                                                           {"upper", letters},
                                                           {"wordcount", wordcount}};

}  // namespace

Value Interpreter::call_filter(const Call& c) {
  const Deeper deeper(depth_);
  if (deeper.depth > options_.max_depth) return fail(c.place, "nested deeper than " + std::to_string(options_.max_depth), "template-limit");
  if (!ok() || !work(c.place, 1)) return {};
  for (const auto& [name, filter] : filters)
    if (name == c.name) return filter(*this, c);
  return fail(c.place, "the filter `" + printable(c.name) + "` is not carried out", "template-unsupported");
}

}  // namespace modelc::chat
