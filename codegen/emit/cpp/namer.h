// Names of generated C++: one place that knows keywords and collisions.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace modelc::emit {

// A legal identifier near `name`: "layers.0" → "layers_0", "2nd" → "_2nd", "class" → "class_". Never empty.
std::string identifier(std::string_view name);

// "LlamaAttention" → "llama_attention".
std::string snake_case(std::string_view name);

// The names of one scope: each asked-for name comes back unique in it.
class Scope {
 public:
  Scope() = default;
  explicit Scope(std::initializer_list<std::string_view> taken);
  std::string unique(std::string_view name);     // identifier(name), with _2, _3, … when it is taken
  bool taken(const std::string& name) const { return names_.count(name) > 0; }

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace modelc::emit
