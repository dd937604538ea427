#include "frontend/syntax/parser_version.h"

#include "RuntimeMetaData.h"

namespace modelc::syntax {

std::string antlr_version() { return antlr4::RuntimeMetaData::VERSION + " (tool " + MODELC_ANTLR_TOOL_VERSION + ")"; }

}  // namespace modelc::syntax
