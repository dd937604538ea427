// Patterns over the components of tensor and module names, as checkpoint rules and hook filters use them:
// "model.layers.{i}.self_attn.*_proj", "**.rotary_emb.inv_freq".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modelc {

// Components are separated by dots. `*` is any one component, or any part of one ("*_proj"); `**` any number of them,
// also none; `{i}` a whole number without leading zeros; `{rest*}` any number of components. A name in braces that
// stands twice must match the same text. A name of more than `max_components` matches only as a plain text.
class TensorPattern {
 public:
  static constexpr std::size_t max_components = 64;        // bounds the tries of a pattern with several **
  // What the names in braces stand for.
  using Captures = std::vector<std::pair<std::string, std::string>>;

  explicit TensorPattern(std::string_view text);

  const std::string& text() const { return text_; }
  bool is_plain() const { return plain_; }                 // names one tensor
  int size() const { return static_cast<int>(parts_.size()); }
  std::optional<Captures> match(std::string_view name) const;
  bool matches(std::string_view name) const { return match(name).has_value(); }
  // Matches the first components of the name (all of them, too); `rest` is what follows, without its dot.
  std::optional<Captures> match_prefix(std::string_view name, std::string& rest) const;
  // The name that the captures make of this pattern; nothing when it has *, **, or a name in braces that they lack.
  std::optional<std::string> fill(const Captures& captures) const;

 private:
  enum class Kind : unsigned char { text, part, any, many, index, rest };
  struct Part {
    Kind kind;
    std::string text;
  };
  bool walk(const std::vector<std::string_view>& name, std::size_t part, std::size_t at, Captures& captures, std::size_t* prefix) const;
  std::string text_;
  std::vector<Part> parts_;
  bool plain_ = true;
};

}  // namespace modelc
