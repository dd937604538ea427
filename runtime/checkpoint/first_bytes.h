// What a file looks like by its first bytes, for messages about files that are not what their name says.
#pragma once

#include <string_view>

namespace modelc {

struct FileGuess {
  std::string_view says;  // "it looks like an HTML page: …"
  std::string_view help;
};
// Null where nothing is recognised. A byte order mark is skipped.
const FileGuess* guess_file(std::string_view first_bytes);

}  // namespace modelc
