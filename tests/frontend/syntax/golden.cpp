#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "golden.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;

namespace {
const std::string separator = "\n========\n";
}

std::string read_file(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::vector<fs::path> files_below(const std::string& folder, const std::string& extension) {
  std::vector<fs::path> out;
  const fs::path root = fs::path(MODELC_SOURCE_DIR) / folder;
  if (!fs::exists(root)) return out;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file() && entry.path().extension() == extension) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Golden> golden_cases(const std::string& folder) {
  std::vector<Golden> out;
  for (const fs::path& path : files_below("tests/frontend/syntax/cases/" + folder, ".test")) {
    const std::string text = read_file(path);
    const std::size_t at = text.find(separator);
    // The source keeps the line break before the separator.
    const std::string source = at == std::string::npos ? text : text.substr(0, at + 1);
    out.push_back({path, source, at == std::string::npos ? "" : text.substr(at + separator.size())});
  }
  REQUIRE_FALSE(out.empty());
  return out;
}

void check_golden(const Golden& one, const std::string& found) {
  if (std::getenv("MODELC_UPDATE_CASES") != nullptr) {
    std::ofstream(one.path, std::ios::binary) << one.source << separator.substr(1) << found;
    return;
  }
  CAPTURE(one.path.string());
  CHECK(found == one.expected);
}
