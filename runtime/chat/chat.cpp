#include "runtime/chat/chat.h"

#include <filesystem>
#include <utility>

#include "runtime/base/mapped_file.h"
#include "runtime/base/strings.h"

namespace modelc {

namespace {

constexpr const char* token_names[] = {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

Error field_error(const std::string& file, const Json& at, const std::string& what) {
  return {"chat-field", file + ":" + std::to_string(at.line()) + ": " + what, {}, {}};
}

// "text", or {"content": "text", ..}.
const std::string* token_text(const Json& value) {
  if (const Json* content = value.find("content")) return content->as_string();
  return value.as_string();
}

Status add_tokens(const Json& config, const std::string& file, JsonObject& tokens) {
  for (const char* name : token_names) {
    const Json* value = config.find(name);
    if (!value || value->is_null()) continue;
    const std::string* text = token_text(*value);
    if (!text) return field_error(file, *value, std::string(name) + " is no token: expected a string, or an object with `content`");
    tokens.set(name, *text);
  }
  const Json* more = config.find("additional_special_tokens");
  if (!more || more->is_null()) return {};
  JsonArray list;
  if (const JsonArray* given = more->as_array())
    for (const Json& value : *given)
      if (const std::string* text = token_text(value)) list.emplace_back(*text);
  tokens.set("additional_special_tokens", std::move(list));
  return {};
}

void add_tokens(const Metadata& metadata, JsonObject& tokens) {
  const auto vocabulary = metadata.find("tokenizer.ggml.tokens");
  if (!vocabulary) return;
  constexpr std::pair<const char*, const char*> names[] = {{"bos", "bos_token"},       {"eos", "eos_token"},     {"unknown", "unk_token"},
                                                           {"seperator", "sep_token"}, {"padding", "pad_token"}, {"cls", "cls_token"},
                                                           {"mask", "mask_token"}};
  for (const auto& [key, name] : names) {
    const auto id = metadata.find("tokenizer.ggml." + std::string(key) + "_token_id");
    const auto number = id ? id->as_uint() : std::nullopt;
    if (!number || *number >= vocabulary->size()) continue;
    if (const auto text = vocabulary->at(static_cast<std::size_t>(*number)).as_string()) tokens.set(name, *text);
  }
}

}  // namespace

Json chat_message(std::string_view role, std::string_view content) {
  JsonObject message;
  message.set("role", role);
  message.set("content", content);
  return message;
}

Result<ChatFormat> ChatFormat::parse(std::string_view source, const std::string& name, JsonObject special_tokens) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source, name);
  if (!parsed) return std::move(parsed.error());
  return ChatFormat(std::move(*parsed), name, std::move(special_tokens));
}

Result<std::optional<ChatFormat>> ChatFormat::of(const CheckpointIndex& checkpoint) {
  JsonObject tokens;
  std::optional<std::string> source, for_tools;
  std::string name;
  if (checkpoint.metadata) {
    add_tokens(*checkpoint.metadata, tokens);
    const auto text = checkpoint.metadata->find("tokenizer.chat_template");
    if (text && text->as_string()) source = *text->as_string(), name = "tokenizer.chat_template";
    const auto tool = checkpoint.metadata->find("tokenizer.chat_template.tool_use");
    if (tool && tool->as_string()) for_tools = *tool->as_string();
  }
  if (!checkpoint.tokenizer_config_json.empty()) {
    Result<JsonFile> file = read_json_file(checkpoint.tokenizer_config_json);
    if (!file) return std::move(file.error());
    const std::string label = std::filesystem::path(checkpoint.tokenizer_config_json).filename().string();
    if (Status status = add_tokens(file->root, label, tokens); !status) return status.error();
    const Json* given = file->root.find("chat_template");
    if (given && !given->is_null()) {
      source.reset();
      for_tools.reset();
      name = label + ": chat_template";
      if (given->as_string()) {
        source = *given->as_string();
      } else if (const JsonArray* list = given->as_array()) {
        for (const Json& entry : *list) {
          const Json *which = entry.find("name"), *text = entry.find("template");
          if (!which || !which->as_string() || !text || !text->as_string())
            return field_error(label, entry, "expected a template with `name` and `template`");
          if (*which->as_string() == "default") source = *text->as_string();
          if (*which->as_string() == "tool_use") for_tools = *text->as_string();
        }
      } else {
        return field_error(label, *given, "chat_template is no template: expected a string, or a list of named ones");
      }
    }
  }
  if (!checkpoint.chat_template.empty()) {
    Result<MappedFile> file = MappedFile::open(checkpoint.chat_template);
    if (!file) return std::move(file.error());
    source = std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    for_tools.reset();
    name = std::filesystem::path(checkpoint.chat_template).filename().string();
  }
  if (!source) return std::optional<ChatFormat>();
  Result<ChatFormat> format = parse(*source, name, std::move(tokens));
  if (!format) return std::move(format.error());
  if (for_tools) {
    Result<ChatTemplate> tool = ChatTemplate::parse(*for_tools, name + " \"tool_use\"");
    if (!tool) return std::move(tool.error());
    format->with_tools_.emplace(std::move(*tool));
  }
  return std::optional<ChatFormat>(std::move(*format));
}

Result<std::string> ChatFormat::text(const JsonArray& messages, const ChatOptions& options) const {
  JsonObject context = special_tokens_;
  context.set("messages", messages);
  context.set("tools", options.tools.empty() ? Json() : Json(options.tools));
  context.set("documents", Json());
  context.set("add_generation_prompt", options.add_generation_prompt);
  for (const JsonMember& m : options.variables) context.set(m.key, m.value);
  const ChatTemplate& chosen = with_tools_ && !options.tools.empty() ? *with_tools_ : main_;
  return chosen.render(context, options.render);
}

}  // namespace modelc
