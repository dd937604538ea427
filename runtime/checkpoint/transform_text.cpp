// The text of transforms: "transpose(1, 2), reshape([4, 8]), stack(e)".
#include <algorithm>
#include <array>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/transform.h"

namespace modelc {
namespace {

constexpr std::array<std::string_view, 10> names = {
    "transpose", "reshape", "stack", "split", "concat", "unzip", "deinterleave_rope_rows", "offset", "log_negated", "cast"};

// Arguments of one call; a list is one argument with its brackets. Commas inside brackets and parentheses are theirs.
std::vector<std::string_view> cut(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '(' || text[i] == '[')) ++depth;
    if (i < text.size() && (text[i] == ')' || text[i] == ']')) --depth;
    if (i < text.size() && (text[i] != ',' || depth != 0)) continue;
    if (const std::string_view part = trim(text.substr(begin, i - begin)); !part.empty()) parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

bool numbers(std::string_view list, std::vector<std::int64_t>& to) {
  if (list.size() < 2 || list.front() != '[' || list.back() != ']') return false;
  for (std::string_view part : cut(list.substr(1, list.size() - 2))) {
    const auto n = parse_int(part);
    if (!n || *n < 0) return false;
    to.push_back(*n);
  }
  return true;
}

bool read(Transform& t, const std::vector<std::string_view>& args) {
  const auto integer = [&](std::size_t i, std::int64_t& to) {
    const auto n = i < args.size() ? parse_int(args[i]) : std::nullopt;
    if (n) to = *n;
    return n.has_value();
  };
  switch (t.kind) {
    case TransformKind::transpose: return args.size() == 2 && integer(0, t.a) && integer(1, t.b);
    case TransformKind::reshape: return args.size() == 1 && numbers(args[0], t.sizes);
    case TransformKind::stack: t.index = args.empty() ? "" : args[0]; return args.size() == 1;
    case TransformKind::split:
    case TransformKind::unzip: return args.size() == 1 && integer(0, t.a);
    case TransformKind::concat: return args.size() == 2 && integer(0, t.a) && numbers(args[1], t.sizes);
    case TransformKind::deinterleave_rope_rows:
      return (args.size() == 1 || (args.size() == 2 && integer(1, t.b) && t.b > 0)) && integer(0, t.a) && t.a > 0;
    case TransformKind::offset: {
      const auto v = args.size() == 1 ? parse_double(args[0]) : std::nullopt;
      if (v) t.value = *v;
      return v.has_value();
    }
    case TransformKind::log_negated: return args.empty();
    case TransformKind::cast: {
      const auto d = args.size() == 1 ? dtype_from_name(args[0]) : std::nullopt;
      if (d) t.dtype = *d;
      return d.has_value();
    }
  }
  return false;
}

std::string list(const std::vector<std::int64_t>& sizes) { return shape_text(sizes); }

}  // namespace

std::string_view name(TransformKind kind) { return names[static_cast<std::size_t>(kind)]; }

Result<std::vector<Transform>> parse_transforms(std::string_view text) {
  std::vector<Transform> steps;
  for (std::string_view call : cut(text)) {
    const std::size_t open = call.find('(');
    const auto at = std::find(names.begin(), names.end(), trim(call.substr(0, open)));
    Transform t;
    t.kind = static_cast<TransformKind>(at - names.begin());
    if (open == std::string_view::npos || call.back() != ')' || at == names.end() ||
        !read(t, cut(call.substr(open + 1, call.size() - open - 2))))
      return Error{"rule", "no transform reads " + quote(call), {}, {}};
    steps.push_back(std::move(t));
  }
  return steps;
}

std::string text(const Transform& t) {
  std::string args;
  switch (t.kind) {
    case TransformKind::transpose: args = std::to_string(t.a) + ", " + std::to_string(t.b); break;
    case TransformKind::reshape: args = list(t.sizes); break;
    case TransformKind::stack: args = t.index; break;
    case TransformKind::split:
    case TransformKind::unzip: args = std::to_string(t.a); break;
    case TransformKind::concat: args = std::to_string(t.a) + ", " + list(t.sizes); break;
    case TransformKind::deinterleave_rope_rows: args = std::to_string(t.a) + (t.b > 0 ? ", " + std::to_string(t.b) : ""); break;
    case TransformKind::offset: args = shortest(t.value); break;
    case TransformKind::log_negated: break;
    case TransformKind::cast: args = modelc::name(t.dtype); break;
  }
  return std::string(name(t.kind)) + "(" + args + ")";
}

}  // namespace modelc
