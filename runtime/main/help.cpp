#include "runtime/main/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "runtime/base/strings.h"

namespace modelc::main_program {

namespace {

constexpr std::size_t columns = 100;
constexpr std::size_t widest_name = 28;                    // a longer one has its text on the next line

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// The words of a text in lines that end before `columns`; lines after the first are indented.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t at = indent;
  for (const std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    const std::size_t width = width_of(word);
    if (at > indent && at + 1 + width > columns) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
    }
    if (at > indent) out += ' ', ++at;
    out += word;
    at += width;
  }
  return out;
}

using Row = std::pair<std::string, std::string>;

std::string rows_text(const std::vector<Row>& rows) {
  std::size_t name_width = 0;
  for (const Row& r : rows)
    if (const std::size_t w = width_of(r.first); w <= widest_name) name_width = std::max(name_width, w);
  const std::size_t indent = 2 + name_width + 2;
  std::string out;
  for (const auto& [name, text] : rows) {
    out += "  " + name;
    const std::size_t w = width_of(name);
    out += w <= name_width ? std::string(name_width - w + 2, ' ') : "\n" + std::string(indent, ' ');
    out += wrapped(text, indent) + "\n";
  }
  return out;
}

// "PATH": the type's name without what a validator adds to it.
std::string value_of(const CLI::Option& o) {
  if (o.get_type_size() == 0) return "";
  const std::string type = o.get_type_name();
  return type.substr(0, type.find(':'));
}

bool repeats(const CLI::Option& o) { return o.get_expected_max() >= CLI::detail::expected_max_vector_size; }

std::string name_of(const CLI::Option& o) {
  if (o.get_positional()) return o.get_name(true, false) + (repeats(o) ? "..." : "");
  const std::string value = value_of(o);
  return replace_all(o.get_name(false, true), ",", ", ") + (value.empty() ? "" : " " + value);
}

// With everything that must be there.
std::string usage_of(const CLI::App& app) {
  std::string out = command_path(app);
  bool more = false;
  for (const CLI::Option* o : app.get_options()) {
    if (o == app.get_help_ptr() || o->get_group().empty()) continue;
    if (o->get_positional()) out += o->get_required() ? " " + name_of(*o) : " [" + name_of(*o) + "]";
    else if (!o->get_positional() && o->get_required()) out += " " + o->get_name() + " " + value_of(*o);
    else more = true;
  }
  if (!app.get_subcommands({}).empty()) out += app.get_require_subcommand_min() > 0 ? " COMMAND" : " [COMMAND]";
  return out + (more ? " [options]" : "");
}

class Layout : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    const bool command = app->get_parent() != nullptr;
    std::string out = wrapped(command ? command_path(*app) + ": " + app->get_description() : app->get_description(), 0) + "\n\n";
    out += "usage: " + wrapped(usage_of(*app), 7) + "\n";
    std::vector<Row> rows;
    for (const CLI::App* c : app->get_subcommands({})) rows.emplace_back(c->get_name(), c->get_description());
    if (!rows.empty()) out += "\ncommands:\n" + rows_text(rows);
    out += help_of_options(*app);
    if (!command && !app->get_footer().empty()) out += "\n" + app->get_footer() + "\n";
    return out;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_layout() { return std::make_shared<Layout>(); }

std::string command_path(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return (parent == nullptr ? "" : command_path(*parent) + " ") + app.get_name();
}

std::string help_of_options(const CLI::App& app) {
  std::string out;
  for (const std::string& group : app.get_groups()) {
    if (group.empty()) continue;
    std::vector<Row> rows;
    for (const CLI::Option* o : app.get_options())
      if (o->get_group() == group && o != app.get_help_ptr() && o->get_description() != o->get_name(true, false))
        rows.emplace_back(name_of(*o), o->get_description());
    if (!rows.empty()) out += "\n" + to_lower_ascii(group.substr(0, 1)) + group.substr(1) + ":\n" + rows_text(rows);
  }
  return out;
}

UnknownOption unknown_option(const CLI::App& app) {
  UnknownOption u;
  for (const CLI::Option* o : app.get_options()) {
    for (const std::string& name : o->get_lnames()) u.known.push_back("--" + name);
    for (const std::string& name : o->get_snames()) u.known.push_back("-" + name);
  }
  for (const std::string& given : app.remaining(true)) {
    if (!given.starts_with("-")) continue;
    u.given = given.substr(0, given.find('='));
    break;
  }
  return u;
}

}  // namespace modelc::main_program
