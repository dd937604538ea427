// A checkpoint's chat template with the special tokens that it names: from a conversation to the text of a prompt.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/metadata.h"
#include "runtime/base/result.h"
#include "runtime/chat/template.h"
#include "runtime/checkpoint/index.h"

namespace modelc {

struct ChatOptions {
  bool add_generation_prompt = true;  // ends where the answer begins
  JsonArray tools = {};               // JSON schemas of functions; none: the template is told of no tools
  JsonObject variables = {};          // more for the template: enable_thinking, documents
  RenderOptions render = {};
};

// {"role": role, "content": content}
Json chat_message(std::string_view role, std::string_view content);

class ChatFormat {
 public:
  // From chat_template.jinja beside the weights, else from tokenizer_config.json (the template named "default" where
  // there are several, "tool_use" where tools are given), else from a GGUF's tokenizer.chat_template. Nothing where there
  // is none. Kinds of errors: those of the files and of ChatTemplate::parse, "chat-field".
  static Result<std::optional<ChatFormat>> of(const CheckpointIndex& checkpoint);
  // The same from the text of a template, and the special tokens that it may name ("bos_token").
  static Result<ChatFormat> parse(std::string_view source, const std::string& name, JsonObject special_tokens = {});

  // The text of a conversation, special tokens included: encode it without adding any.
  Result<std::string> text(const JsonArray& messages, const ChatOptions& options = {}) const;
  // Where the template stands.
  const std::string& source() const { return source_; }

 private:
  ChatFormat(ChatTemplate main, std::string source, JsonObject tokens)
      : main_(std::move(main)), source_(std::move(source)), special_tokens_(std::move(tokens)) {}
  ChatTemplate main_;
  std::optional<ChatTemplate> with_tools_;
  std::string source_;
  JsonObject special_tokens_;
};

}  // namespace modelc
