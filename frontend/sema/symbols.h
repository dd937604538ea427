// The names of files: what each declares, what its imports give, what the prelude adds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/diagnostics/diagnostics.h"
#include "frontend/source/source.h"
#include "frontend/syntax/ast.h"

namespace modelc::sema {

struct FileSymbols;

enum class SymbolKind : std::uint8_t { config, variant, interface, module, function, op, encoding, axis };

// A declaration of a file. Symbols stay where they are for the life of the Imports, so their address is their identity.
struct Symbol {
  SymbolKind kind = SymbolKind::config;
  std::string name;
  const ast::Item* decl = nullptr;
  const FileSymbols* file = nullptr;
  source::Span span;                                   // of the name
};

// "config", "module", "model", "fn": for messages.
std::string_view word(const Symbol& symbol);

struct ImportedFile {
  const FileSymbols* file = nullptr;
  std::string alias;                                   // "" when none: its declarations are found by name alone
  source::Span span;                                   // of the import
};

struct FileSymbols {
  source::FileId id;
  std::string name;                                    // display name: "nn/attention.model"
  const ast::File* ast = nullptr;
  std::map<std::string, Symbol, std::less<>> declared;
  std::vector<ImportedFile> imports;

  const Symbol* own(std::string_view name) const;      // declared here; may be null
};

// What a file's own declarations and its imports say of a name. Imports do not hand on what they import.
struct SymbolLookup {
  const Symbol* symbol = nullptr;
  const FileSymbols* alias = nullptr;                  // the name is an import's alias
  std::vector<const Symbol*> candidates;               // two or more: ambiguous, and `symbol` is null
};
SymbolLookup find_symbol(const FileSymbols& file, std::string_view name);

// The same, reporting an ambiguous use once with both places. Null and silent when there is no such name. `failed` is
// set where something was reported.
const Symbol* resolve(const FileSymbols& file, std::string_view name, source::Span use, diag::Sink& sink, bool& failed);

// All names that find_symbol finds, for "did you mean".
void symbol_names(const FileSymbols& file, std::vector<std::string>& into);

// Fills `declared` from the tree; a name declared twice in a file is reported.
void declare(FileSymbols& file, diag::Sink& sink);

// ---- the prelude ----------------------------------------------------------------------------------------------------

// A function of the language. `builtins.cpp` holds the table; most of graph::op_table()'s names are operations on
// tensors too, and are found there when a graph is being built.
struct Builtin {
  std::string_view name;
  std::string_view doc;                                // "ceil_div(a, b): a / b, rounded up"
  int min_arguments = 1;
  int max_arguments = 1;
  bool is_static = false;                              // has a meaning on static values
  bool on_tensors = false;                             // has a meaning on tensors: an operation of the graph's table
};
// Of a static function or an operation on tensors; null when there is none of this name.
const Builtin* find_builtin(std::string_view name);

inline constexpr std::string_view prelude_axes[] = {"tokens", "outputs", "batch", "seq"};
bool is_prelude_axis(std::string_view name);
// Of the prelude, or one that the file or an import declares.
bool is_axis(const FileSymbols& file, std::string_view name);
// KVCache, LatentCache, CrossCache, Ring, Recurrent: after `state name:` only.
bool is_state_kind(std::string_view name);
// dim, int, float, bool, string, module, Batch, Sequences, and the dtypes.
bool is_type_word(std::string_view name);
void prelude_names(std::vector<std::string>& into);

}  // namespace modelc::sema
