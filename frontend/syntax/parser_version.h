// Which ANTLR made the parser, and which one it runs with.
#pragma once

#include <string>

namespace modelc::syntax {

// "4.9 (tool 4.7.2)"
std::string antlr_version();

}  // namespace modelc::syntax
