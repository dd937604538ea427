#include "frontend/sema/config_tree.h"

#include <algorithm>

#include "runtime/base/strings.h"

namespace modelc::sema {

namespace {

// `*` stands for any characters.
bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool same_path(const ast::Path& path, const std::vector<std::string>& keys) {
  return path.parts.size() == keys.size() && std::equal(keys.begin(), keys.end(), path.parts.begin(),
                                                        [](const std::string& key, const ast::Name& part) { return key == part.text; });
}

// The path goes to something below these keys.
bool goes_below(const ast::Path& path, const std::vector<std::string>& keys) {
  return path.parts.size() > keys.size() && std::equal(keys.begin(), keys.end(), path.parts.begin(),
                                                       [](const std::string& key, const ast::Name& part) { return key == part.text; });
}

// The rule that decides on a key: of the nearest level, and there a written-out key before one with `*`.
const KeyRule* rule_for(const ConfigDef& def, const std::vector<std::string>& keys) {
  const KeyRule* best = nullptr;
  bool best_exact = false;
  for (const KeyRule& rule : def.key_rules) {
    const ast::KeyPattern& pattern = *rule.pattern;
    const bool exact = pattern.quoted ? keys.size() == 1 && pattern.string.value == keys[0] : same_path(pattern.path, keys);
    const bool wild = !exact && pattern.quoted && keys.size() == 1 && glob(pattern.string.value, keys[0]);
    if (!exact && !wild) continue;
    const bool better = best == nullptr || rule.level < best->level || (rule.level == best->level && exact && !best_exact);
    if (!better) continue;
    best = &rule;
    best_exact = exact;
  }
  return best;
}

bool rules_go_below(const ConfigDef& def, const std::vector<std::string>& keys) {
  return std::any_of(def.key_rules.begin(), def.key_rules.end(),
                     [&](const KeyRule& rule) { return !rule.pattern->quoted && goes_below(rule.pattern->path, keys); });
}

// A field of the definition is read from exactly this key.
bool is_read_from(const ConfigDef& def, const std::vector<std::string>& keys) {
  return std::any_of(def.fields.begin(), def.fields.end(), [&](const FieldDef& field) {
    if (field.item->from.empty()) return keys.size() == 1 && keys[0] == field.name;
    return std::any_of(field.item->from.begin(), field.item->from.end(), [&](const ast::Path& path) { return same_path(path, keys); });
  });
}

std::vector<std::string> known_keys(const ConfigDef& def) {
  std::vector<std::string> keys;
  for (const FieldDef& field : def.fields) {
    if (field.item->from.empty()) keys.push_back(field.name);
    for (const ast::Path& path : field.item->from) keys.push_back(path.text());
  }
  for (const KeyRule& rule : def.key_rules) {
    const std::string text = rule.pattern->text();
    if (text.find('*') == std::string::npos) keys.push_back(text);
  }
  return keys;
}

}  // namespace

namespace {

constexpr std::size_t longest_json_text = 60;

// Stops adding where the text is long enough.
void write_json(std::string& out, const Json& value) {
  if (const std::string* text = value.as_string()) {
    out += modelc::quote(*text, longest_json_text);
    return;
  }
  const auto more = [&](std::size_t i, std::size_t count) {
    if (i != 0) out += ", ";
    if (i == 0 || out.size() < longest_json_text) return true;
    out += "… " + std::to_string(count - i) + " more";
    return false;
  };
  if (const JsonArray* array = value.as_array()) {
    out += '[';
    for (std::size_t i = 0; i < array->size() && more(i, array->size()); ++i) write_json(out, (*array)[i]);
    out += ']';
  } else if (const JsonObject* object = value.as_object()) {
    out += '{';
    for (std::size_t i = 0; i < object->size() && more(i, object->size()); ++i) {
      out += modelc::quote((*object)[i].key, longest_json_text) + ": ";
      write_json(out, (*object)[i].value);
    }
    out += '}';
  } else if (value.kind() == Json::Kind::number) {
    out += show(Value::real(*value.as_double()));
  } else {
    out += dump(value);
  }
}

}  // namespace

std::string json_text(const Json& value) {
  std::string out;
  write_json(out, value);
  return out;
}

std::string json_kind(const Json& value) {
  if (value.is_integer()) return "an int";
  switch (value.kind()) {
    case Json::Kind::number: return "a float";
    case Json::Kind::boolean: return "a bool";
    case Json::Kind::string: return "a string";
    case Json::Kind::array: return "a list";
    case Json::Kind::object: return "an object";
    default: return "null";
  }
}

ConfigTree::ConfigTree(const ConfigInput& input, std::string name, Json tree, bool with_overrides, const source::SourceManager& sources,
                       source::FileId file, diag::Sink& sink)
    : root_(std::move(tree)),
      name_(std::move(name)),
      unplaced_(input.unplaced.empty() ? name_ : input.unplaced),
      sources_(sources),
      text_(file) {
  if (!with_overrides || !root_.is_object()) return;
  for (const ConfigInput::Override& override_ : input.overrides) apply(override_, sink);
  // Only now do the values stay where they are.
  for (const auto& [key, text] : overrides_) {
    const Json* value = &root_;
    for (const std::string_view part : split(key, '.')) value = value->find(part);
    mark_set(*value, text);
  }
}

void ConfigTree::apply(const ConfigInput::Override& override_, diag::Sink& sink) {
  const std::string text = "--set " + override_.key + "=" + json_text(override_.value);
  Json* at = &root_;
  std::string path;
  const auto parts = split(override_.key, '.');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) {
      good_ = false;
      sink.error(diag::code::config_set_unknown, text, "`" + override_.key + "` is no key")
          .help("write --set key=value, with dots between the keys of nested objects");
      return;
    }
    JsonObject* object = at->as_object();
    if (object == nullptr) {
      good_ = false;
      sink.error(diag::code::config_set_clash, text,
                 "`" + path + "` is " + json_kind(*at) + " in " + place(*at) + ", so it has no key `" + std::string(parts[i]) + "`");
      return;
    }
    path += (path.empty() ? "" : ".") + std::string(parts[i]);
    Json* next = object->find(parts[i]);
    if (i + 1 == parts.size()) {
      Json value = override_.value;
      value.set_place(0, 0);
      object->set(parts[i], std::move(value));
    } else {
      if (next == nullptr || next->is_null()) next = &object->set(parts[i], JsonObject());
      at = next;
    }
  }
  // Said last counts, for all that lies in it, too: `form.kind=… form=null` leaves no `form.kind`.
  std::erase_if(overrides_,
                [&](const auto& other) { return other.first == override_.key || other.first.starts_with(override_.key + "."); });
  overrides_.emplace_back(override_.key, text);
}

void ConfigTree::mark_set(const Json& value, const std::string& text) {
  set_[&value] = text;
  if (const JsonArray* array = value.as_array()) {
    for (const Json& item : *array) mark_set(item, text);
  }
  if (const JsonObject* object = value.as_object()) {
    for (const JsonMember& member : *object) mark_set(member.value, text);
  }
}

std::string ConfigTree::place(const Json& value) const {
  if (const auto it = set_.find(&value); it != set_.end()) return it->second;
  return value.line() == 0 ? unplaced_ : name_ + ":" + std::to_string(value.line());
}

// From a value's first byte to the end of its word; of an object or a list the bracket alone.
source::Span ConfigTree::span(std::uint32_t offset, std::uint32_t line) const {
  if (!text_.valid() || line == 0) return {};
  const std::string_view text = sources_.text(text_);
  if (offset >= text.size() || sources_.position(text_, offset).line != line) return {};
  std::size_t end = offset + 1;
  if (const char quote = text[offset]; quote == '"' || quote == '\'') {
    while (end < text.size() && text[end] != quote && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, text.size());
  } else if (text[offset] != '{' && text[offset] != '[') {
    while (end < text.size() && std::string_view(",]}:# \t\r\n").find(text[end]) == std::string_view::npos) ++end;
  }
  return {text_, offset, static_cast<std::uint32_t>(end)};
}

diag::Builder ConfigTree::error(diag::Sink& sink, const diag::Code& code, const Json& value, std::string message) const {
  const source::Span at = is_set(value) ? source::Span{} : span(value.offset(), value.line());
  return at.valid() ? sink.error(code, at, std::move(message)) : sink.error(code, place(value), std::move(message));
}

diag::Builder ConfigTree::error(diag::Sink& sink, const diag::Code& code, const JsonMember& member, std::string message) const {
  const source::Span at = is_set(member.value) ? source::Span{} : span(member.offset, member.line);
  return at.valid() ? sink.error(code, at, std::move(message)) : error(sink, code, member.value, std::move(message));
}

const Json* ConfigTree::find(const Json& object, const ast::Path& path, const Json** is_null) const {
  const Json* at = &object;
  for (const ast::Name& part : path.parts) {
    at = at->find(part.text);
    if (at == nullptr) return nullptr;
  }
  if (!at->is_null()) return at;
  if (is_null != nullptr) *is_null = at;
  return nullptr;
}

void ConfigTree::claim_path(const Json& object, const ast::Path& path) {
  const Json* at = &object;
  for (std::size_t i = 0; i + 1 < path.parts.size(); ++i) {
    at = at->find(path.parts[i].text);
    if (at == nullptr || !at->is_object()) return;
    partly_.insert(at);
  }
}

bool ConfigTree::judge(const ConfigDef& def, diag::Sink& sink, std::vector<std::string>& notes) const {
  return judge(root_, "", {{&def, {}}}, sink, notes);
}

bool ConfigTree::judge(const Json& object, const std::string& path, const std::vector<Scope>& scopes, diag::Sink& sink,
                       std::vector<std::string>& notes) const {
  bool good = true;
  for (const JsonMember& member : *object.as_object()) {
    const Json& value = member.value;
    if (claimed_.contains(&value)) {
      good = judge_inside(value, path + member.key, sink, notes) && good;
      continue;
    }
    if (value.is_null()) {
      // Absent; but --set names no unknown key, not even to take it away.
      const bool known = !is_set(value) || std::any_of(scopes.begin(), scopes.end(), [&](const Scope& scope) {
        std::vector<std::string> keys = scope.prefix;
        keys.push_back(member.key);
        return is_read_from(*scope.def, keys) || rule_for(*scope.def, keys) != nullptr;
      });
      if (!known) report_unbound(member, path, *scopes.front().def, sink);
      good = good && known;
      continue;
    }
    std::vector<Scope> below;
    if (const auto bound = objects_.find(&value); bound != objects_.end()) {
      for (const ConfigDef* def : bound->second) below.push_back({def, {}});
    }
    const bool is_bound = !below.empty();
    const KeyRule* rule = nullptr;
    const ConfigDef* judge_of_rule = nullptr;
    bool deeper = partly_.contains(&value);
    for (const Scope& scope : scopes) {
      std::vector<std::string> keys = scope.prefix;
      keys.push_back(member.key);
      if (rule == nullptr) {
        rule = rule_for(*scope.def, keys);
        judge_of_rule = scope.def;
      }
      deeper = deeper || rules_go_below(*scope.def, keys);
      below.push_back({scope.def, std::move(keys)});
    }
    if (is_bound || (rule == nullptr && deeper && value.is_object())) {
      good = judge(value, path + member.key + ".", below, sink, notes) && good;
      continue;
    }
    if (rule == nullptr) {
      good = false;
      report_unbound(member, path, *scopes.front().def, sink);
    } else if (rule->refuse) {
      good = false;
      error(sink, diag::code::config_key_refused, member,
            "`" + path + printable(member.key) + "` = " + json_text(value) + " is refused by " + judge_of_rule->name)
          .label(rule->pattern->span, "refused here")
          .help(
              "this model file does not describe such a model: use one that does, or, when the key has no effect in "
              "this "
              "checkpoint, say --set " +
              path + member.key + "=null");
    } else if (is_set(value)) {
      notes.push_back(place(value) + " has no effect: " + judge_of_rule->name + " ignores the key");
    }
  }
  return good;
}

bool ConfigTree::judge_inside(const Json& value, const std::string& path, diag::Sink& sink, std::vector<std::string>& notes) const {
  bool good = true;
  const auto judge_one = [&](const Json& item, const std::string& item_path) {
    const auto bound = objects_.find(&item);
    if (bound == objects_.end()) {
      good = judge_inside(item, item_path, sink, notes) && good;
      return;
    }
    std::vector<Scope> scopes;
    for (const ConfigDef* def : bound->second) scopes.push_back({def, {}});
    good = judge(item, item_path + ".", scopes, sink, notes) && good;
  };
  if (objects_.empty()) return true;
  if (const JsonArray* array = value.as_array()) {
    for (std::size_t i = 0; i < array->size(); ++i) judge_one((*array)[i], path + "[" + std::to_string(i) + "]");
  }
  if (const JsonObject* object = value.as_object()) {
    for (const JsonMember& member : *object) judge_one(member.value, path + "." + member.key);
  }
  return good;
}

void ConfigTree::report_unbound(const JsonMember& member, const std::string& path, const ConfigDef& def, diag::Sink& sink) const {
  const std::string key = path + printable(member.key);
  const auto near = diag::nearest(member.key, known_keys(def));
  const std::string question = near ? "did you mean `" + *near + "`? " : "";
  if (is_set(member.value)) {
    sink.error(diag::code::config_set_unknown, place(member.value), "nothing in " + def.name + " binds the key `" + key + "`")
        .label(def.span, def.name + " is declared here")
        .help(near ? question : "set a key that the config binds");
    return;
  }
  error(sink, diag::code::config_key_unbound, member, "nothing in " + def.name + " binds `" + key + "` = " + json_text(member.value))
      .label(def.span, def.name + " is declared here")
      .help(question + (near ? "Else bind" : "bind") +
            " it with a field, write `ignore` of it when no forward pass reads it, "
            "or `refuse` when it means another model");
}

}  // namespace modelc::sema
