// How help reads: one layout for modelc and for generated binaries.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace modelc::main_program {

// The layout, for App::formatter before commands are added: what the command does, its usage with everything that is
// required, its commands, its options group by group (Option::group), wrapped at 100 columns.
std::shared_ptr<CLI::FormatterBase> help_layout();

// "modelc run": the names that lead to a command.
std::string command_path(const CLI::App& app);

// The options of an app alone, group by group, as its help has them.
std::string help_of_options(const CLI::App& app);

// After a parse that failed: the first argument that looks like an option and is none, "" where there is no such, and all
// names that it could have meant.
struct UnknownOption {
  std::string given;                                       // "--confg", without a value behind '='
  std::vector<std::string> known;                          // "--config", "-n", …
};
UnknownOption unknown_option(const CLI::App& app);

}  // namespace modelc::main_program
