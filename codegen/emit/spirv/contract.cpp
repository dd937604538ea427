#include "codegen/emit/spirv/contract.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string_view>

namespace modelc::emit {
namespace {

// Numbers of the SPIR-V specification (sections 3.20 to 3.37).
enum Op : std::uint32_t {
  op_name = 5,
  op_execution_mode = 16,
  op_capability = 17,
  op_type_int = 21,
  op_type_float = 22,
  op_type_vector = 23,
  op_type_matrix = 24,
  op_type_array = 28,
  op_type_struct = 30,
  op_type_pointer = 32,
  op_constant = 43,
  op_constant_composite = 44,
  op_spec_constant = 50,
  op_spec_constant_composite = 51,
  op_variable = 59,
  op_decorate = 71,
  op_member_decorate = 72
};
enum Decoration : std::uint32_t {
  spec_id = 1,
  array_stride = 6,
  matrix_stride = 7,
  built_in = 11,
  binding = 33,
  descriptor_set = 34,
  offset = 35
};
enum StorageClass : std::uint32_t { uniform_constant = 0, uniform = 2, workgroup = 4, push_constant = 9, storage_buffer = 12 };
constexpr std::uint32_t workgroup_size = 25, local_size_mode = 17;

struct Capability {
  std::uint32_t number;
  std::string_view feature;                      // what a model file calls it; none: every device has it
  std::string_view name;
};
constexpr Capability capabilities[] = {{0, "", "Matrix"},
                                       {1, "", "Shader"},
                                       {61, "", "GroupNonUniform"},
                                       {9, "float16", "Float16"},
                                       {10, "float64", "Float64"},
                                       {39, "int8", "Int8"},
                                       {22, "int16", "Int16"},
                                       {11, "int64", "Int64"},
                                       {4448, "storage8", "StorageBuffer8BitAccess"},
                                       {4433, "storage16", "StorageBuffer16BitAccess"},
                                       {63, "subgroup_arithmetic", "GroupNonUniformArithmetic"},
                                       {65, "subgroup_shuffle", "GroupNonUniformShuffle"}};

constexpr std::uint64_t most_shared = 16384;   // maxComputeSharedMemorySize is at least that
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;           // so that no product of lengths passes 64 bits

// The parts of a module that say what it asks for.
struct Module {
  struct Variable {
    std::uint32_t id, type, where;               // its type is a pointer's target
  };
  std::map<std::uint32_t, std::span<const std::uint32_t>> made;        // by id: types and constants, whole instructions
  std::map<std::uint32_t, std::string> names;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> decorations;                  // (id, which): its number
  std::map<std::array<std::uint32_t, 2>, std::uint32_t> offsets;       // (struct, member)
  std::vector<Variable> variables;
  std::vector<std::uint32_t> needed;             // capabilities
  std::array<std::uint32_t, 3> local{1, 1, 1};
  std::uint32_t local_constants = 0;             // the composite that says it instead

  explicit Module(const std::vector<std::uint32_t>& words) {
    for (std::size_t at = 5; at < words.size();) {
      const std::size_t n = words[at] >> 16;
      if (n == 0 || n > words.size() - at) return;
      take({words.data() + at, n});
      at += n;
    }
  }

  void take(std::span<const std::uint32_t> w) {
    switch (w[0] & 0xFFFF) {
      case op_capability: needed.push_back(w[1]); return;
      case op_name: {
        const auto* text = reinterpret_cast<const char*>(w.data() + 2);
        names[w[1]] = std::string(text, strnlen(text, (w.size() - 2) * 4));
        return;
      }
      case op_execution_mode:
        if (w[2] == local_size_mode) local = {w[3], w[4], w[5]};
        return;
      case op_decorate:
        decorations[{w[1], w[2]}] = w.size() > 3 ? w[3] : 0;
        if (w[2] == built_in && w[3] == workgroup_size) local_constants = w[1];
        return;
      case op_member_decorate:
        if (w[3] == offset) offsets[{w[1], w[2]}] = w[4];
        return;
      case op_type_int:
      case op_type_float:
      case op_type_vector:
      case op_type_matrix:
      case op_type_array:
      case op_type_struct:
      case op_type_pointer: made[w[1]] = w; return;
      case op_constant:
      case op_constant_composite:
      case op_spec_constant:
      case op_spec_constant_composite: made[w[2]] = w; return;
      case op_variable:
        if (const auto pointer = made.find(w[1]); pointer != made.end()) variables.push_back({w[2], pointer->second[3], w[3]});
        return;
      default: return;
    }
  }

  std::optional<std::uint32_t> decoration(std::uint32_t id, Decoration which) const {
    const auto d = decorations.find({id, which});
    return d == decorations.end() ? std::nullopt : std::optional(d->second);
  }
  std::uint64_t constant(std::uint32_t id) const {
    const auto c = made.find(id);
    return c == made.end() || c->second.size() < 4 ? 0 : c->second[3];
  }
  // Bytes of a type, with the gaps that its decorations say; 0 of what has no size.
  std::uint64_t bytes(std::uint32_t type) const {
    const auto found = made.find(type);
    if (found == made.end()) return 0;
    const std::span<const std::uint32_t> w = found->second;
    std::uint64_t n = 0;
    switch (w[0] & 0xFFFF) {
      case op_type_int:
      case op_type_float: n = w[2] / 8; break;
      case op_type_vector:
      case op_type_matrix: n = bytes(w[2]) * w[3]; break;
      case op_type_array: {
        const auto stride = decoration(type, array_stride);
        n = constant(w[3]) * (stride ? *stride : std::min(bytes(w[2]), most_bytes >> 16));
        break;
      }
      case op_type_struct:                       // of a block's members the offsets are said; others lie one after the other
        for (std::uint32_t i = 0; i + 2 < w.size(); ++i) {
          const auto at = offsets.find({type, i});
          n = std::max(n, (at == offsets.end() ? n : at->second) + bytes(w[i + 2]));
        }
        break;
      default: break;
    }
    return std::min(n, most_bytes);
  }
  std::uint64_t shared() const {
    std::uint64_t n = 0;
    for (const Variable& v : variables)
      if (v.where == workgroup) n += bytes(v.type);
    return n;
  }
  bool is_struct(std::uint32_t type) const {
    const auto found = made.find(type);
    return found != made.end() && (found->second[0] & 0xFFFF) == op_type_struct;
  }
  // An axis of a workgroup: a number, or specialization constant 0, which is the operation's local size (nullopt).
  std::optional<std::uint64_t> local_axis(std::size_t i) const {
    const auto composite = made.find(local_constants);
    if (local_constants == 0 || composite == made.end()) return local[i];
    const std::uint32_t id = composite->second[3 + i];
    if (decoration(id, spec_id) == 0U) return std::nullopt;
    return constant(id);
  }
  std::string name(const Variable& v) const {
    for (const std::uint32_t id : {v.type, v.id})
      if (const auto n = names.find(id); n != names.end() && !n->second.empty()) return n->second;
    return "";
  }
};

// "few.comp:3: ", the first line of the text that has this word; the file's name alone where none has.
std::string place(const std::string& file, const std::string& text, const std::string& word) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t at = text.find(word); !word.empty() && at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at > 0 && is_letter(text[at - 1])) || (end < text.size() && is_letter(text[end]))) continue;
    return file + ":" + std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + ": ";
  }
  return file + ": ";
}

}  // namespace

std::vector<std::string> contract_faults(const std::vector<std::uint32_t>& words, const std::string& name, const std::string& text,
                                         const ShaderContract& c) {
  const Module m(words);
  std::vector<std::string> faults;
  const auto say = [&](const std::string& word, const std::string& what) { faults.push_back(place(name, text, word) + what); };
  const bool buffer = c.sizes > ShaderContract::pushed;
  const std::uint32_t seen = c.tensors + (buffer ? 1 : 0);
  for (const Module::Variable& v : m.variables) {
    const std::string is = m.name(v), quoted = is.empty() ? "a buffer" : "`" + is + "`";
    if (v.where == push_constant) {
      const std::uint64_t n = m.bytes(v.type), told = buffer ? 0 : std::uint64_t{4} * c.sizes;
      if (n > told)
        say(is, quoted + " has " + std::to_string(n) + " bytes of push constants, and the operation's " + std::to_string(c.sizes) +
                    (buffer ? " sizes come as a buffer of uints at binding " + std::to_string(c.tensors)
                            : " sizes are " + std::to_string(told) + " bytes"));
      continue;
    }
    if (v.where != storage_buffer && v.where != uniform && v.where != uniform_constant) continue;
    const std::uint32_t set = m.decoration(v.id, descriptor_set).value_or(0), at = m.decoration(v.id, binding).value_or(0);
    if (v.where != storage_buffer || !m.is_struct(v.type))
      say(is, quoted + " is no single storage buffer (`buffer`), as which an operation's tensors are seen");
    else if (set != 0 || at >= seen)
      say(is, quoted + " is at set " + std::to_string(set) + ", binding " + std::to_string(at) + "; set 0 has bindings 0 to " +
                  std::to_string(seen - 1) + ", the inputs, then the results" + (buffer ? ", then the sizes" : ""));
  }
  for (const std::uint32_t number : m.needed) {
    const auto known =
        std::find_if(std::begin(capabilities), std::end(capabilities), [&](const Capability& k) { return k.number == number; });
    if (known == std::end(capabilities))
      say("", "it uses capability " + std::to_string(number) + " of SPIR-V, which no feature of `requires` stands for");
    else if (!known->feature.empty() && std::find(c.features.begin(), c.features.end(), known->feature) == c.features.end())
      say("", "it uses " + std::string(known->name) + ", and its line has no `requires " + std::string(known->feature) + "`");
  }
  const auto x = m.local_axis(0), y = m.local_axis(1), z = m.local_axis(2);
  if ((x && *x != c.local_size) || y != 1U || z != 1U)
    say(x ? "local_size_x" : "local_size_x_id", "a workgroup is not `local_size` invocations along x: layout(local_size_x_id = 0) in;");
  if (const std::uint64_t n = m.shared(); n > most_shared)
    say("shared", "a workgroup shares " + std::to_string(n) + " bytes; " + std::to_string(most_shared) + " are what every device has");
  return faults;
}

}  // namespace modelc::emit
