// Cases in files: a source, a line of `=`, and what is expected of it. With MODELC_UPDATE_CASES set, the expectation is
// written anew; read the difference before you keep it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

struct Golden {
  std::filesystem::path path;
  std::string source;
  std::string expected;
};

// The .test files of a folder below tests/frontend/syntax/cases, in order.
std::vector<Golden> golden_cases(const std::string& folder);

// Compares, or writes when asked to.
void check_golden(const Golden& one, const std::string& found);

// The files with an extension below a folder of the repository, in order; none if there is no such folder.
std::vector<std::filesystem::path> files_below(const std::string& folder, const std::string& extension);

std::string read_file(const std::filesystem::path& path);
