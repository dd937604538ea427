// Equality, keys and texts of values.
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

#include "frontend/sema/config.h"
#include "frontend/sema/value.h"
#include "frontend/sema/walk.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace {

// ---- keys -----------------------------------------------------------------------------------------------------------

void key(std::string& out, const Value& v);

void key_text(std::string& out, std::string_view text) {
  out += std::to_string(text.size());
  out += ':';
  out += text;
}

void key_pointer(std::string& out, const void* p) {
  std::array<char, 24> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), reinterpret_cast<std::uintptr_t>(p), 16).ptr;
  out.append(buffer.data(), end);
}

void key_arguments(std::string& out, const std::vector<std::pair<std::string, Value>>& arguments) {
  out += '(';
  for (const auto& [name, value] : arguments) {
    out += name;
    out += '=';
    key(out, value);
    out += ',';
  }
  out += ')';
}

void key_config(std::string& out, const ConfigInstance& instance) {
  if (instance.canonical.empty()) {
    std::string text = "c";
    key_pointer(text, instance.definition);
    text += '{';
    for (const ConfigField& field : instance.fields) {
      text += field.name;
      text += '=';
      key(text, field.value);
      text += ',';
    }
    text += '}';
    instance.canonical = std::move(text);
  }
  out += instance.canonical;
}

// The names that a function uses and does not define: an over-approximation, as inner definitions are not taken out.
void collect_names(const ast::Expr& expr, std::set<std::string>& names) {
  if (const auto* name = ast::try_as<ast::NameExpr>(expr)) {
    names.insert(name->name.text);
    return;
  }
  each_child(expr, [&](const ast::Expr& child) { collect_names(child, names); });
}

void collect_names(const ast::Block& block, std::set<std::string>& names) {
  const auto visit = [&](const ast::Expr& expr) { collect_names(expr, names); };
  for (const ast::StatementPtr& statement : block.statements) {
    switch (statement->kind) {
      case ast::StatementKind::let: visit(*ast::as<ast::LetStatement>(*statement).value); break;
      case ast::StatementKind::for_:
        visit(*ast::as<ast::ForStatement>(*statement).source);
        collect_names(ast::as<ast::ForStatement>(*statement).body, names);
        break;
      case ast::StatementKind::return_:
        for (const auto& value : ast::as<ast::ReturnStatement>(*statement).values) visit(*value);
        break;
      case ast::StatementKind::assign: visit(*ast::as<ast::AssignStatement>(*statement).value); break;
      case ast::StatementKind::call:
        names.insert(ast::as<ast::CallStatement>(*statement).path.parts.front().text);
        each_expr(ast::as<ast::CallStatement>(*statement).args, visit);
        break;
    }
  }
}

void key_closure(std::string& out, const Closure& closure) {
  out += 'f';
  key_pointer(out, closure.value != nullptr ? static_cast<const void*>(closure.value) : closure.block);
  std::set<std::string> names;
  if (closure.value != nullptr) collect_names(*closure.value, names);
  if (closure.block != nullptr) collect_names(*closure.block, names);
  for (const ast::Name& param : *closure.params) names.erase(param.text);
  out += '[';
  for (const std::string& name : names) {
    const auto value = closure.environment.peek(name);
    if (!value) continue;  // the file's or the prelude's: the same wherever the text stands
    out += name;
    out += '=';
    if (value->is_error()) {
      key_pointer(out, closure.environment.source_of(name));  // a member: as its instance is
    } else {
      key(out, *value);
    }
    out += ',';
  }
  out += ']';
}

void key(std::string& out, const Value& v) {
  switch (v.kind()) {
    case ValueKind::error: out += '!'; break;
    case ValueKind::none: out += 'n'; break;
    case ValueKind::boolean: out += v.as_bool() ? "T" : "F"; break;
    case ValueKind::integer: out += std::to_string(v.as_int()); break;
    case ValueKind::real: {
      // A whole real is equal to an integer, so it is written as one; all others by their bits.
      const double d = v.as_real();
      if (d == std::trunc(d) && std::abs(d) < 9.2e18) {
        out += std::to_string(static_cast<std::int64_t>(d));
      } else {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &d, sizeof bits);
        out += 'r';
        out += std::to_string(bits);
      }
      break;
    }
    case ValueKind::string:
      out += 's';
      key_text(out, v.as_string());
      break;
    case ValueKind::list:
    case ValueKind::tuple:
      out += v.is(ValueKind::list) ? '[' : '(';
      for (const Value& item : v.items()) {
        key(out, item);
        out += ',';
      }
      out += ']';
      break;
    case ValueKind::map:
      out += "m{";
      for (const auto& [name, value] : v.entries()) {
        key_text(out, name);
        key(out, value);
      }
      out += '}';
      break;
    case ValueKind::config: key_config(out, v.as_config()); break;
    case ValueKind::variant:
      out += 'v';
      key_pointer(out, v.as_variant().definition);
      out += std::to_string(v.as_variant().case_index);
      key_config(out, *v.as_variant().fields);
      break;
    case ValueKind::recipe:
    case ValueKind::encoding:
      out += v.is(ValueKind::recipe) ? 'R' : 'E';
      key_pointer(out, v.as_recipe().symbol);
      if (v.as_recipe().called) key_arguments(out, v.as_recipe().arguments);
      break;
    case ValueKind::interface:
    case ValueKind::op:
      out += 'S';
      key_pointer(out, &v.as_symbol());
      break;
    case ValueKind::closure: key_closure(out, v.as_closure()); break;
    case ValueKind::builtin:
      out += 'B';
      out += v.as_builtin().name;
      break;
    case ValueKind::files:
      out += 'N';
      key_pointer(out, &v.as_files());
      break;
    case ValueKind::dim:
      out += 'd';
      out += std::to_string(v.as_dim().index);
      break;
    case ValueKind::tensor:
    case ValueKind::batch:
      out += 't';
      out += std::to_string(v.as_graph().id.index);
      break;
    case ValueKind::member:
      out += 'M';
      key_pointer(out, v.as_member().get());
      break;
    case ValueKind::absent:
      out += 'A';
      key_text(out, v.as_absent().name);
      break;
  }
}

// ---- texts ----------------------------------------------------------------------------------------------------------

std::string real_text(double d) {
  // A theta of 500000 is more readable than 5e+05.
  if (d == std::trunc(d) && std::abs(d) < 1e15) return std::to_string(static_cast<std::int64_t>(d)) + ".0";
  std::string text = shortest(d);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

void show_into(std::string& out, const Value& v, std::size_t max_bytes);

template <class Each> void show_items(std::string& out, std::size_t count, std::size_t max_bytes, const Each& each) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) out += ", ";
    // One may always stand, so that a short list is never only a count.
    if (i != 0 && out.size() >= max_bytes) {
      out += "… " + std::to_string(count - i) + " more";
      return;
    }
    each(i);
  }
}

void show_recipe(std::string& out, const Recipe& recipe, std::size_t max_bytes) {
  out += recipe.symbol == nullptr ? std::string("plain") : recipe.symbol->name;
  if (!recipe.called || recipe.symbol == nullptr) return;
  out += '(';
  show_items(out, recipe.arguments.size(), max_bytes, [&](std::size_t i) {
    out += recipe.arguments[i].first + ": ";
    show_into(out, recipe.arguments[i].second, max_bytes);
  });
  out += ')';
}

void show_into(std::string& out, const Value& v, std::size_t max_bytes) {
  switch (v.kind()) {
    case ValueKind::error: out += "an error"; break;
    case ValueKind::none: out += "none"; break;
    case ValueKind::boolean: out += v.as_bool() ? "true" : "false"; break;
    case ValueKind::integer: out += std::to_string(v.as_int()); break;
    case ValueKind::real: out += real_text(v.as_real()); break;
    case ValueKind::string: out += modelc::quote(v.as_string(), max_bytes); break;
    case ValueKind::list:
    case ValueKind::tuple:
      out += v.is(ValueKind::list) ? '[' : '(';
      show_items(out, v.items().size(), max_bytes, [&](std::size_t i) { show_into(out, v.items()[i], max_bytes); });
      out += v.is(ValueKind::list) ? ']' : ')';
      break;
    case ValueKind::map:
      out += '{';
      show_items(out, v.entries().size(), max_bytes, [&](std::size_t i) {
        out += modelc::quote(v.entries()[i].first, max_bytes) + ": ";
        show_into(out, v.entries()[i].second, max_bytes);
      });
      out += '}';
      break;
    case ValueKind::config: out += v.as_config().definition->name; break;
    case ValueKind::variant: out += v.as_variant().definition->symbol->name + " " + modelc::quote(v.as_variant().tag, max_bytes); break;
    case ValueKind::recipe:
    case ValueKind::encoding: show_recipe(out, v.as_recipe(), max_bytes); break;
    case ValueKind::interface:
    case ValueKind::op: out += v.as_symbol().name; break;
    case ValueKind::closure: out += v.as_closure().name.empty() ? "fn" : v.as_closure().name; break;
    case ValueKind::builtin: out += v.as_builtin().name; break;
    case ValueKind::files: out += v.as_files().name; break;
    case ValueKind::dim: out += formula_text(v.formula()); break;
    case ValueKind::tensor: out += "a tensor"; break;
    case ValueKind::batch: out += v.as_graph().type.kind == graph::TypeKind::batch ? "a Batch" : "a Sequences"; break;
    case ValueKind::member: out += v.as_member()->describe(); break;
    case ValueKind::absent: out += "the absent `" + v.as_absent().name + "`"; break;
  }
}

bool equal_entries(const std::vector<std::pair<std::string, Value>>& a, const std::vector<std::pair<std::string, Value>>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].first != b[i].first || !equal(a[i].second, b[i].second)) return false;
  }
  return true;
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is(ValueKind::integer) && b.is(ValueKind::integer)) return a.as_int() == b.as_int();
    return a.as_real() == b.as_real();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case ValueKind::none: return true;
    case ValueKind::boolean: return a.as_bool() == b.as_bool();
    case ValueKind::string: return a.as_string() == b.as_string();
    case ValueKind::list:
    case ValueKind::tuple: {
      if (a.items().size() != b.items().size()) return false;
      for (std::size_t i = 0; i < a.items().size(); ++i) {
        if (!equal(a.items()[i], b.items()[i])) return false;
      }
      return true;
    }
    case ValueKind::map: return equal_entries(a.entries(), b.entries());
    default: return canonical(a) == canonical(b);
  }
}

std::string canonical(const Value& value) {
  std::string out;
  key(out, value);
  return out;
}

std::string show(const Value& value, std::size_t max_bytes) {
  std::string out;
  show_into(out, value, max_bytes);
  return out;
}

std::string kind_name(const Value& v) {
  switch (v.kind()) {
    case ValueKind::error: return "an error";
    case ValueKind::none: return "none";
    case ValueKind::boolean: return "a bool";
    case ValueKind::integer: return "an int";
    case ValueKind::real: return "a float";
    case ValueKind::string: return "a string";
    case ValueKind::list: return "a list";
    case ValueKind::tuple: return counted(v.items().size(), "result");
    case ValueKind::map: return "a map";
    case ValueKind::config: return "the config " + v.as_config().definition->name;
    case ValueKind::variant: return "a " + v.as_variant().definition->symbol->name;
    case ValueKind::recipe: return "the " + std::string(word(*v.as_recipe().symbol)) + " " + v.as_recipe().symbol->name;
    case ValueKind::interface: return "the interface " + v.as_symbol().name;
    case ValueKind::encoding: return "an encoding";
    case ValueKind::closure: return v.as_closure().name.empty() ? "a fn" : "the fn " + v.as_closure().name;
    case ValueKind::builtin: return "the function " + std::string(v.as_builtin().name);
    case ValueKind::op: return "the op " + v.as_symbol().name;
    case ValueKind::files: return "the file " + v.as_files().name;
    case ValueKind::dim: return "a size of run time";
    case ValueKind::tensor: return "a tensor";
    case ValueKind::batch:
    case ValueKind::member:
    case ValueKind::absent: return show(v);
  }
  return "a value";
}

std::string show_formula(const Value& value) {
  const FormulaPtr& f = value.formula();
  if (!f || f->kind == Formula::Kind::constant) return show(value);
  std::string out = formula_text(f);
  const std::string values = formula_values(f);
  const std::string result = show(value);
  if (values != result) out += " = " + values;
  return out + " = " + result;
}

}  // namespace modelc::sema
