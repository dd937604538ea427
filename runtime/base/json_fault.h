// Where a text departs from JSON's grammar, said for a person. Private to json_parse.cpp, which asks once it knows that the
// text is no JSON: the fast reader tells that something is wrong, and often a good way behind the place.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace modelc {

struct JsonFault {
  std::size_t at = 0;  // byte in the text
  std::string what;    // what was found and what was expected
  std::string help;    // the way out; may be empty
};

// The first fault of brackets, commas, colons, keys and words; nothing where the text has none (what strings hold, sizes and
// duplicate keys are not looked at). Time and memory are linear in the text, and nothing recurses.
std::optional<JsonFault> find_json_fault(std::string_view text);

// Whether the text is a number of JSON's grammar; `whole` where it has neither fraction nor exponent.
bool is_json_number(std::string_view text, bool& whole);

}  // namespace modelc
