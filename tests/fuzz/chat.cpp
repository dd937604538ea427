// Any bytes as a chat template, rendered for a conversation with tools.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/chat/template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const modelc::Json context = *modelc::parse_json(
      R"({"messages": [{"role": "system", "content": " be brief "}, {"role": "user", "content": [{"type": "text", "text": "é"}]},
          {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.5}}}]}],
          "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {}}}}],
          "add_generation_prompt": true, "bos_token": "<s>", "n": 7, "list": [3, 1, 2]})");
  const auto parsed = modelc::ChatTemplate::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed) return 0;
  modelc::RenderOptions options;
  options.max_steps = 200'000;
  options.max_output = 1 << 18;
  static_cast<void>(parsed->render(context, options));
  return 0;
}
