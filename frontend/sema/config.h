// Configurations: their definitions with inheritance resolved, binding to a config.json, and what nothing reads.
//
// Closed world: every key of the file is bound to a field, ignored or refused by name; every field gets its value from
// the file, from the command line or from a default that the definition writes. null is absent. Each problem is one
// message, all of them in one run, and says what was found where, what was expected and where that is declared.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/diagnostics/diagnostics.h"
#include "frontend/sema/analyze.h"
#include "frontend/sema/symbols.h"
#include "frontend/sema/value.h"

namespace modelc::sema {

class Evaluator;

// ---- definitions ----------------------------------------------------------------------------------------------------

// A field after inheritance. Items of a base keep their file: their expressions see its imports.
struct FieldDef {
  std::string name;
  const ast::FieldItem* item = nullptr;
  source::Span span;                                 // of the name
  const FileSymbols* file = nullptr;
  bool reads_itself = false;                         // a literal type, or a list or option of one literal
  bool mentioned = false;                            // by another item of the config: a default, a let, a require …
};
struct LetDef {
  std::string name;
  const ast::LetItem* item = nullptr;
  const FileSymbols* file = nullptr;
};
struct FunctionDef {
  std::string name;
  const ast::FunctionDecl* item = nullptr;
  const FileSymbols* file = nullptr;
};
struct RequireDef {
  const ast::RequireItem* item = nullptr;
  const FileSymbols* file = nullptr;
};
// `refuse` or `ignore` of one key pattern; level 0 is the config itself, 1 its base, …: the lowest level counts.
struct KeyRule {
  const ast::KeyPattern* pattern = nullptr;
  bool refuse = false;
  int level = 0;
};

struct ConfigDef {
  const Symbol* symbol = nullptr;                    // null: a case of a variant
  std::string name;                                  // "LlamaConfig", "RopeScaling \"yarn\""
  source::Span span;                                 // of the name
  const ConfigDef* base = nullptr;
  std::optional<std::string> file;                   // config X file "sub/other.json"
  std::vector<FieldDef> fields;                      // base first; an override stands where the base's field stood
  std::vector<LetDef> lets;
  std::vector<FunctionDef> functions;
  std::vector<RequireDef> requires_;
  std::vector<KeyRule> key_rules;

  const FieldDef* field(std::string_view field_name) const;
  // This definition or one of its bases is `other`.
  bool is_a(const Symbol& other) const;
};

struct VariantDef {
  const Symbol* symbol = nullptr;
  struct Case {
    const ast::VariantCase* decl = nullptr;
    std::unique_ptr<ConfigDef> fields;
  };
  std::vector<Case> cases;

  std::optional<std::size_t> find(std::string_view tag) const;  // the case with this tag, aliases included
  std::vector<std::string> tags() const;                        // all, in order
};

// Definitions, made once. Null where the definition itself is wrong (all that is wrong with it is reported once).
class ConfigDefs {
 public:
  explicit ConfigDefs(Evaluator& evaluator) : evaluator_(evaluator) {}
  const ConfigDef* config(const Symbol& symbol);
  const VariantDef* variant(const Symbol& symbol);

 private:
  friend class ConfigDefiner;
  template <class Def> struct Entry {
    std::unique_ptr<Def> def;                        // null: failed, or being made
    bool open = false;                               // being made
  };
  Evaluator& evaluator_;
  int depth_ = 0;                                    // of the chain of bases at hand
  std::map<const Symbol*, Entry<ConfigDef>> configs_;
  std::map<const Symbol*, Entry<VariantDef>> variants_;
};

// ---- binding --------------------------------------------------------------------------------------------------------

// What a parameter of the model of type `config` gets. `notes` receives a line for each value that the command line
// set. The value is an error when anything was wrong. A config with `file "sub/other.json"` reads that file of
// input.folder.
Value bind_config(Evaluator& evaluator, const Symbol& config, const ConfigInput& input, std::vector<std::string>& notes);

// Checks definitions where no configuration is given: fields, inheritance, names in defaults. False when one was wrong.
bool check_config(Evaluator& evaluator, const Symbol& config);

// Reports each field that neither a module nor the config itself has looked at. To be called when the model has been
// instantiated whole, and only when nothing else went wrong. `model` is the model's name for the message.
void report_unread_fields(Evaluator& evaluator, const Value& config, std::string_view model);

}  // namespace modelc::sema
