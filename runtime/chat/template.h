// A chat template: the text that a conversation becomes, written in the part of Jinja that published templates use.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace modelc {

struct RenderOptions {
  std::uint64_t max_steps = 20'000'000;        // operations, and items and bytes that they copy
  std::size_t max_output = std::size_t{16} << 20;  // bytes of the text and of any string on the way
  int max_depth = 200;                         // expressions, blocks and macros in each other
  std::optional<std::time_t> now = {};         // what strftime_now() gives; the clock if not given
};

class ChatTemplate {
 public:
  // `name` is what messages call it. Kinds of errors: "template-syntax", "template-unsupported" (a block that is not
  // carried out), "template-limit"; each with line and column.
  static Result<ChatTemplate> parse(std::string_view source, const std::string& name = "chat_template");

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // The text for the variables that are the members of `context`: messages, tools, add_generation_prompt, bos_token..
  // Kinds of errors, with line and column: "template-error", "template-unsupported" (a filter, test, method or function
  // that is not carried out), "template-limit", "template-raised" (the template refuses the conversation by
  // raise_exception; the message is its own).
  Result<std::string> render(const Json& context, const RenderOptions& options = {}) const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::unique_ptr<const Parsed> parsed);
  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace modelc
