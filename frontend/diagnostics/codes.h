// The codes of all messages. A code is stable: it is never renumbered and never used for another mistake. To add one,
// add a row to the .def file of its range in codes/ and a test that provokes it (tests/frontend/diagnostics checks that
// each code stands in some test).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace modelc::diag {

enum class Severity { error, warning, note };

// One kind of message. `text` is "E0301", "W0301" or "N0401": its letter is its severity.
struct Code {
  std::string_view text;
  std::string_view id;           // the constant's name: "unknown_name"
  std::string_view title;        // one line, without a full stop
  std::string_view explanation;  // what `modelc explain CODE` prints below the title

  constexpr Severity severity() const {
    return text.front() == 'E' ? Severity::error : text.front() == 'W' ? Severity::warning : Severity::note;
  }
};

namespace code {
#define MODELC_CODE(ID, CODE, TITLE, EXPLANATION) inline constexpr Code ID{CODE, #ID, TITLE, EXPLANATION};
#include "frontend/diagnostics/codes/all.def"
#undef MODELC_CODE
}  // namespace code

// All codes in the order of the tables.
std::span<const Code> all_codes();

// The code written `text` (in either case), or null.
const Code* find_code(std::string_view text);

// What `modelc explain CODE` prints: "E0301: title\n\nexplanation\n".
std::string explain(const Code& code);

}  // namespace modelc::diag
