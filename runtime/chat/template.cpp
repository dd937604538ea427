#include "runtime/chat/template.h"

#include "runtime/base/strings.h"
#include "runtime/chat/interpreter.h"
#include "runtime/chat/syntax.h"

namespace modelc {

struct ChatTemplate::Parsed {
  std::string name;
  chat::NodePointer root;
};

ChatTemplate::ChatTemplate(std::unique_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const std::string& name) {
  constexpr std::size_t longest = std::size_t{4} << 20;
  if (source.size() > longest) return Error{"template-limit", name + " has " + human_bytes(source.size()) + ", more than 4 MB", {}, {}};
  if (!is_utf8(source)) return Error{"template-syntax", name + " is not UTF-8", {}, {}};
  Result<chat::NodePointer> root = chat::parse_template(source, name);
  if (!root) return std::move(root.error());
  return ChatTemplate(std::make_unique<const Parsed>(Parsed{name, std::move(*root)}));
}

Result<std::string> ChatTemplate::render(const Json& context, const RenderOptions& options) const {
  return chat::Interpreter(parsed_->name, options).run(*parsed_->root, context);
}

}  // namespace modelc
