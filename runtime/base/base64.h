// Bytes as text of 64 characters (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace modelc {

std::string to_base64(std::string_view bytes);                         // filled up with '='
std::optional<std::string> from_base64(std::string_view text);         // with or without '='; nothing where another character stands

}  // namespace modelc
