// A config bound to its file, and what nothing has read of it.
#include <algorithm>
#include <filesystem>

#include "frontend/sema/config_object.h"

namespace modelc::sema {

namespace {

// "hidden_size = 64 by --set (config.json:3 says 40)"
void note_overrides(const ConfigInput& input, std::vector<std::string>& notes) {
  for (const ConfigInput::Override& override_ : input.overrides) {
    const Json* before = input.tree.find_path(override_.key);
    std::string line = override_.key + " = " + json_text(override_.value) + " by --set";
    if (before != nullptr && !before->is_null()) {
      line += " (" + input.name + (before->line() != 0 ? ":" + std::to_string(before->line()) : "") + " says " + json_text(*before) + ")";
    }
    notes.push_back(std::move(line));
  }
}

}  // namespace

Value bind_config(Evaluator& evaluator, const Symbol& symbol, const ConfigInput& input, std::vector<std::string>& notes) {
  diag::Sink& sink = evaluator.sink();
  const ConfigDef* def = evaluator.config_defs().config(symbol);
  if (def == nullptr) return Value::error();
  Json root = input.tree;
  source::FileId text = input.text;
  std::string name = input.name;
  if (def->file) {
    name = *def->file;
    const source::Span span = ast::as<ast::ConfigDecl>(*symbol.decl).file->span;
    if (input.folder.empty()) {
      sink.error(diag::code::config_file, span, symbol.name + " is bound to " + *def->file + ", and no folder is known to look for it")
          .help("give the checkpoint's folder with --checkpoint");
      return Value::error();
    }
    const std::filesystem::path relative(*def->file);
    const bool outside =
        relative.is_absolute() || std::any_of(relative.begin(), relative.end(), [](const auto& part) { return part == ".."; });
    if (outside) {
      sink.error(diag::code::config_file, span, "the file of a config lies in the checkpoint's folder: " + *def->file);
      return Value::error();
    }
    JsonOptions options;
    options.name = name;
    const std::filesystem::path path = std::filesystem::path(input.folder) / relative;
    auto file = read_json_file(path.string(), options);
    if (!file) {
      diag::error_in_text(sink, evaluator.texts(), diag::code::config_file, path, name, file.error())
          .label(span, symbol.name + " is bound to it here");
      return Value::error();
    }
    root = std::move(file->root);
    text = evaluator.texts().add(name, std::move(file->text));
  } else {
    note_overrides(input, notes);
  }
  if (!root.is_object()) {
    sink.error(diag::code::config_no_object, name,
               name + " holds " + json_kind(root) + ": expected an object with the keys of " + symbol.name)
        .label(symbol.span, symbol.name + " is declared here");
    return Value::error();
  }
  ConfigTree tree(input, name, std::move(root), !def->file, evaluator.sources(), text, sink);
  Binding binding{evaluator, tree};
  const ConfigInstance* instance = ObjectBinder(binding, *def, tree.root(), "").bind();
  const bool judged = tree.judge(*def, sink, notes);
  return instance != nullptr && judged && tree.good() ? Value::config(instance) : Value::error();
}

bool check_config(Evaluator& evaluator, const Symbol& config) { return evaluator.config_defs().config(config) != nullptr; }

namespace {

void report_unread(diag::Sink& sink, const ConfigInstance& instance, std::string_view model) {
  for (std::size_t i = 0; i < instance.fields.size(); ++i) {
    const ConfigField& field = instance.fields[i];
    if (field.decl == nullptr) continue;
    const bool read = i < instance.read.size() && instance.read[i];
    if (!read && !field.reads_itself) {
      sink.error(diag::code::config_unread, field.span,
                 "nothing in " + std::string(model) + " reads `" + field.name + "` of " + instance.definition->name)
          .note("its value is " + show(field.value, 60) + " " + field.origin)
          .help("use it where the model depends on it, or take the field out and write `ignore " + field.name + "`");
      continue;
    }
    if (field.value.is(ValueKind::config)) report_unread(sink, field.value.as_config(), model);
    if (field.value.is(ValueKind::variant)) report_unread(sink, *field.value.as_variant().fields, model);
  }
}

}  // namespace

void report_unread_fields(Evaluator& evaluator, const Value& config, std::string_view model) {
  if (config.is(ValueKind::config)) report_unread(evaluator.sink(), config.as_config(), model);
}

}  // namespace modelc::sema
