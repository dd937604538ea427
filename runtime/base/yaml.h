// Configurations written as YAML, read into the same tree as JSON. Library modelc_yaml, used by the compiler alone: the
// runtime does not link yaml-cpp.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"

namespace modelc {

// Reads one document. Scalars follow YAML 1.2's core schema: plain true/false/null/~, numbers (also .inf and 1e-5), all
// else a string; a quoted scalar is always a string. Anchors and aliases are expanded, bounded by options.max_values.
// Refused: several documents, a key twice or one that is not a scalar, .nan, tags other than the core ones, merge keys.
// Kinds of errors: "yaml-syntax", "yaml-duplicate-key", "yaml-depth", "yaml-size".
Result<Json> parse_yaml(std::string_view text, const JsonOptions& options = {});
Result<JsonFile> read_yaml_file(const std::string& path, JsonOptions options = {});

// A configuration by its ending: .yaml and .yml as YAML, all else as JSON.
Result<JsonFile> read_config_file(const std::string& path, JsonOptions options = {});

}  // namespace modelc
