#include "runtime/device/place_text.h"

#include <algorithm>

#include "runtime/base/device_name.h"
#include "runtime/base/strings.h"

namespace modelc {

namespace {

constexpr const char* form = "PATTERN=NAME,…,NAME, as in model.layers[0..16]=vulkan:0,cpu; `modelc devices` lists the names";

Error wrong(std::string_view element, const std::string& what, std::string help = form) {
  return Error{"device-name", "device " + quote(element) + ": " + what, {}, std::move(help)};
}

// An end of a range; nothing is left out.
bool read_end(std::string_view text, std::optional<std::int64_t>& to) {
  if (text.empty()) return true;
  const auto number = parse_uint(text);
  if (!number || *number > static_cast<std::uint64_t>(INT64_MAX)) return false;
  to = static_cast<std::int64_t>(*number);
  return true;
}

bool is_pattern(std::string_view text) {
  const auto parts = split(text, '.');
  return std::none_of(parts.begin(), parts.end(), [](std::string_view p) { return trim(p).empty() || trim(p) != p; }) &&
         text.find_first_of("[]=") == std::string_view::npos;
}

// "model.layers[0..16]" into the rule.
Status read_target(std::string_view target, std::string_view element, PlaceRule& rule) {
  if (const std::size_t open = target.find('['); open != std::string_view::npos) {
    const std::string_view range = target.substr(open);
    const std::size_t dots = range.find("..");
    if (range.back() != ']' || dots == std::string_view::npos || !read_end(trim(range.substr(1, dots - 1)), rule.first) ||
        !read_end(trim(range.substr(dots + 2, range.size() - dots - 3)), rule.end))
      return wrong(element, "after the pattern stands " + quote(range) + ", which is no range", "a range is [0..16], [16..] or [..16]");
    if (rule.end && *rule.end < rule.first.value_or(0))
      return wrong(element, "the range " + std::string(range.substr(1, range.size() - 2)) + " ends before it begins",
                   "the end is exclusive: [0..16] is the first 16");
    target = trim(target.substr(0, open));
  }
  if (target.empty()) return wrong(element, "the pattern is empty", "** is the whole model, as is a name without a pattern");
  if (!is_pattern(target)) return wrong(element, quote(target) + " is no pattern of modules");
  rule.pattern = target;
  return {};
}

}  // namespace

Result<std::vector<PlaceRule>> read_placement(std::string_view text) {
  std::vector<PlaceRule> rules;
  std::string whole;                                       // the element that is the whole model, once there was one
  for (std::string_view element : split(text, ',')) {
    element = trim(element);
    if (element.empty()) return wrong(text, "an element of the list is empty");
    if (!whole.empty())
      return wrong(element, "nothing is left for it: " + quote(whole) + " before it is the whole model",
                   "the first that matches counts: the whole model stands last");
    PlaceRule rule;
    const std::size_t equals = element.rfind('=');
    const std::string_view name = equals == std::string_view::npos ? element : trim(element.substr(equals + 1));
    if (equals == std::string_view::npos) rule.pattern = "**";
    else if (Status s = read_target(trim(element.substr(0, equals)), element, rule); !s) return std::move(s.error());
    const auto device = read_device_name(name);
    if (!device) {
      Error e{"device-name", "there is no device " + quote(name), {}, device_names_help};
      if (name != trim(text)) e.notes.push_back("in " + quote(text));
      return e;
    }
    rule.device = device->text();
    if (rule.pattern == "**" && !rule.first && !rule.end) whole = element;
    rules.push_back(std::move(rule));
  }
  return rules;
}

const PlaceRule* first_vulkan(const std::vector<PlaceRule>& rules) {
  const auto at = std::find_if(rules.begin(), rules.end(), [](const PlaceRule& r) {
    const auto name = read_device_name(r.device);
    return name && name->vulkan;
  });
  return at == rules.end() ? nullptr : &*at;
}

}  // namespace modelc
