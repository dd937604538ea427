// The members of a JSON object where they stand in its text, one after the other: what a header of a hundred million bytes is
// read by, so that no tree of it is ever in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace modelc {

struct JsonText {
  std::string_view text;         // of one value, as it stands
  std::size_t at = 0;            // its first byte in the text of the object
};

// Calls `each` with the texts of a key (with its quotation marks) and of its value; false from it ends the walk, and success is
// returned. Only the object's own structure is read here: what lies within a value, and within a key, parse_json says. Kinds of
// errors: "json-syntax"; "json-depth" where brackets are nested deeper than `max_depth`, the object's own counted. Messages begin
// with `name` and the byte, counted from `base`.
Status each_member(std::string_view text, const std::string& name, std::size_t base, int max_depth,
                   const std::function<bool(const JsonText& key, const JsonText& value)>& each);

}  // namespace modelc
