// A configuration's tree while it is bound: where each value stands, what the command line has set, which keys are
// taken.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/diagnostics/diagnostics.h"
#include "frontend/sema/analyze.h"
#include "frontend/sema/config.h"

namespace modelc::sema {

class ConfigTree {
 public:
  // The tree with the overrides applied. Overrides that cannot be are reported. `text` is what it was read from, if known.
  ConfigTree(const ConfigInput& input, std::string name, Json tree, bool with_overrides, const source::SourceManager& sources,
             source::FileId text, diag::Sink& sink);

  // Whether all overrides could be applied.
  bool good() const { return good_; }
  const Json& root() const { return root_; }
  const std::string& name() const { return name_; }
  // "config.json:12", "--set head_dim=64"; the name alone where the line is not known.
  std::string place(const Json& value) const;
  // A message at a value, with its line where the text is known; at a member it marks the key.
  diag::Builder error(diag::Sink& sink, const diag::Code& code, const Json& value, std::string message) const;
  diag::Builder error(diag::Sink& sink, const diag::Code& code, const JsonMember& member, std::string message) const;
  bool is_set(const Json& value) const { return set_.contains(&value); }

  // The value at a dotted path below `object`, unless it is absent or null. `is_null` tells that it is there as null.
  const Json* find(const Json& object, const ast::Path& path, const Json** is_null = nullptr) const;

  // ---- what is taken
  // The value with all in it.
  void claim(const Json& value) { claimed_.insert(&value); }
  // The object's keys are judged by this definition, too.
  void claim_object(const Json& object, const ConfigDef& def) { objects_[&object].push_back(&def); }
  // A field reads something below the objects on the path, whether it is there or not.
  void claim_path(const Json& object, const ast::Path& path);

  // Reports each key that nothing takes, ignores or refuses, and each that is refused. True when there was none.
  // `notes` gets a line for each --set that has no effect.
  bool judge(const ConfigDef& def, diag::Sink& sink, std::vector<std::string>& notes) const;

 private:
  struct Scope {
    const ConfigDef* def;
    std::vector<std::string> prefix;                 // from the object that the definition is bound to
  };
  source::Span span(std::uint32_t offset, std::uint32_t line) const;
  void apply(const ConfigInput::Override& override_, diag::Sink& sink);
  void mark_set(const Json& value, const std::string& text);
  bool judge(const Json& object, const std::string& path, const std::vector<Scope>& scopes, diag::Sink& sink,
             std::vector<std::string>& notes) const;
  // The objects of configs and cases in a list or map that a field takes whole.
  bool judge_inside(const Json& value, const std::string& path, diag::Sink& sink, std::vector<std::string>& notes) const;
  void report_unbound(const JsonMember& member, const std::string& path, const ConfigDef& def, diag::Sink& sink) const;

  Json root_;
  std::string name_, unplaced_;
  const source::SourceManager& sources_;
  source::FileId text_;
  bool good_ = true;
  std::vector<std::pair<std::string, std::string>> overrides_;           // key, "--set key=value"
  std::unordered_map<const Json*, std::string> set_;
  std::unordered_set<const Json*> claimed_;
  std::unordered_set<const Json*> partly_;                               // objects that fields read from
  std::unordered_map<const Json*, std::vector<const ConfigDef*>> objects_;
};

// A value of a configuration as messages show it, cut when long.
std::string json_text(const Json& value);
// "an int", "a float", "a string", "an object"
std::string json_kind(const Json& value);

}  // namespace modelc::sema
