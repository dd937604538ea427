#include "codegen/driver/convert_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "frontend/sema/conversion.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/gguf/types.h"
#include "runtime/tokenizer/gguf_writer.h"

namespace modelc::driver {

namespace fs = std::filesystem;
namespace code = diag::code;

namespace {

constexpr std::string_view own_prefix = "modelc.";              // what other programs do not ask for
constexpr std::string_view widened_prefix = "modelc.widened.";

// The encoding that most matrices have, which general.file_type is about.
std::optional<Encoding> usual_encoding(const std::vector<ConvertedTensor>& tensors) {
  std::map<Encoding, std::size_t> count;
  for (const ConvertedTensor& t : tensors)
    if (t.shape.size() > 1) ++count[t.encoding];
  const auto most = std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == count.end() ? std::nullopt : std::optional(most->first);
}

template <class T, class Get, class Add> bool add_list(const JsonArray& items, Get get, Add add) {
  std::vector<T> values;
  for (const Json& j : items) {
    const auto v = get(j);
    if (!v) return false;
    values.push_back(static_cast<T>(*v));
  }
  add(values);
  return true;
}

// One key in the type that readers of the format look for: u32, or i32 of what is negative; f32; lists of i32, f32, bool.
bool add_item(const sema::MetadataOfConfig::Item& item, MetadataBuilder& to) {
  const Json& v = item.value;
  if (const auto b = v.as_bool()) return to.add(item.key, *b), true;
  if (v.as_string() != nullptr) return to.add_string(item.key, *v.as_string()), true;
  if (item.real && v.as_double()) return to.add_f32(item.key, static_cast<float>(*v.as_double())), true;
  if (const auto i = v.as_int()) {
    if (*i >= 0 && *i <= UINT32_MAX) to.add_u32(item.key, static_cast<std::uint32_t>(*i));
    else if (*i < 0 && *i >= INT32_MIN) to.add_i32(item.key, static_cast<std::int32_t>(*i));
    else to.add_i64(item.key, *i);
    return true;
  }
  const JsonArray* list = v.as_array();
  if (list == nullptr || list->empty()) return false;
  if ((*list)[0].is_bool())
    return add_list<bool>(
        *list, [](const Json& j) { return j.as_bool(); }, [&](const auto& x) { to.add_bools(item.key, x); });
  if (item.real)
    return add_list<float>(
        *list, [](const Json& j) { return j.as_double(); }, [&](const auto& x) { to.add_f32s(item.key, x); });
  return add_list<std::int32_t>(
      *list, [](const Json& j) { return j.as_int() && *j.as_int() >= INT32_MIN && *j.as_int() <= INT32_MAX ? j.as_int() : std::nullopt; },
      [&](const auto& x) { to.add_i32s(item.key, x); });
}

bool read_json(Session& s, const std::string& path, Json& to) {
  if (path.empty()) return true;
  auto file = read_json_file(path);
  if (!file) {
    s.sink.error(code::checkpoint_unreadable, path, file.error());
    return false;
  }
  to = std::move(file->root);
  return true;
}

void refuse(Session& s, const std::string& place, const Error& e) { s.sink.error(code::cannot_write, place, e); }

void add_widened(const Conversion& conversion, MetadataBuilder& to) {
  std::map<Encoding, std::vector<std::string>> names;
  for (const auto& [tensor, encoding] : conversion.widened()) names[encoding].push_back(tensor);
  for (const auto& [encoding, list] : names) to.add_strings(std::string(widened_prefix) + std::string(name(encoding)), list);
}

// The last part of its path.
std::string name_of(const CheckpointIndex& source) {
  const fs::path path = fs::absolute(source.path).lexically_normal();
  return (path.filename().empty() ? path.parent_path() : path).filename().string();
}

// Of a folder: the tokenizer's keys, or a vocabulary of places alone, which says how many tokens there are.
bool add_tokenizer(Session& s, const CheckpointIndex& source, std::int64_t vocabulary, MetadataBuilder& to,
                   std::vector<std::string>& lost) {
  const bool skip = s.options.no_tokenizer;
  if (skip || source.tokenizer_json.empty()) {
    std::vector<std::string> places;
    for (std::int64_t i = 0; i < vocabulary; ++i) places.push_back("[PAD" + std::to_string(i) + "]");
    to.add_string("tokenizer.ggml.model", "no_vocab");
    to.add_strings("tokenizer.ggml.tokens", places);
    to.add_i32s("tokenizer.ggml.token_type", std::vector<std::int32_t>(places.size(), 5));
    lost.push_back(skip ? "the tokenizer, by --no-tokenizer"
                        : name_of(source) + " has no tokenizer.json: the file has a vocabulary without texts");
    return true;
  }
  TokenizerFiles files;
  if (!read_json(s, source.tokenizer_json, files.tokenizer) || !read_json(s, source.tokenizer_config_json, files.tokenizer_config) ||
      !read_json(s, source.generation_config_json, files.generation_config))
    return false;
  if (source.config) files.config = source.config->root;
  if (!source.chat_template.empty()) {
    auto text = read_text_file(source.chat_template);
    if (!text) {
      s.sink.error(code::checkpoint_unreadable, source.chat_template, text.error());
      return false;
    }
    files.chat_template = std::move(*text);
  }
  if (Status status = add_gguf_tokenizer(files, vocabulary, to, lost); !status) {
    refuse(s, source.tokenizer_json, status.error());
    return false;
  }
  return true;
}

bool is_weights(const fs::path& path) {
  const std::string e = to_lower_ascii(path.extension().string());
  return e == ".safetensors" || e == ".gguf" || e == ".bin" || e == ".pt" || e == ".pth" || e == ".ckpt" || e == ".h5" || e == ".onnx" ||
         e == ".msgpack" || path.filename().string().ends_with(".safetensors.index.json") || path.filename().string().ends_with(".pack");
}

}  // namespace

bool has_tokenizer(const CheckpointIndex& source) {
  if (!source.tokenizer_json.empty()) return true;
  return source.metadata && has_gguf_tokenizer(*source.metadata);
}

std::map<std::string, Encoding> widened_of(const CheckpointIndex& source) {
  std::map<std::string, Encoding> out;
  if (!source.metadata) return out;
  for (const Encoding e : {Encoding::bf16, Encoding::f16}) {
    const auto list = source.metadata->find(std::string(widened_prefix) + std::string(name(e)));
    if (!list || !list->is_array() || list->element_type() != MetadataType::string) continue;
    for (std::size_t i = 0; i < list->size(); ++i) out.emplace(list->at(i).as_string().value_or(""), e);
  }
  return out;
}

std::optional<Metadata> gguf_metadata(Session& s, const CheckpointIndex& source, const sema::ConfigInput& config,
                                      const Conversion& conversion, std::int64_t vocabulary, std::vector<std::string>& lost) {
  MetadataBuilder to;
  const std::vector<ConvertedTensor>& tensors = conversion.tensors();
  const auto usual = usual_encoding(tensors);
  const auto file_type = usual ? gguf_file_type(*usual) : std::nullopt;
  const bool packed = std::any_of(tensors.begin(), tensors.end(), [](const ConvertedTensor& t) { return block_elements(t.encoding) > 1; });
  const auto add_general = [&] {
    if (file_type) to.add_u32("general.file_type", *file_type);
    if (packed) to.add_u32("general.quantization_version", 2);
  };
  if (source.metadata) {
    // Requantised: what it says stays, but for how it is stored and in how many parts.
    for (std::size_t i = 0; i < source.metadata->size(); ++i) {
      const std::string_view key = source.metadata->key(i);
      if (key == "general.file_type" || key == "general.quantization_version" || key.starts_with("split.") ||
          key.starts_with(widened_prefix))
        continue;
      to.add_value(key, source.metadata->value(i));
    }
    add_general();
    return to.build();
  }
  auto of_config = sema::metadata_of_config(s.sources, *s.imports, config, s.sink);
  if (!of_config) return std::nullopt;
  to.add_string("general.architecture", of_config->architecture);
  to.add_string("general.type", "model");
  const std::string name = name_of(source);
  to.add_string("general.name", is_utf8(name) ? name : std::string("model"));
  add_general();
  for (const auto& item : of_config->items)
    if (!add_item(item, to)) lost.push_back("the configuration's value for " + item.key + ", which no type of the format holds");
  if (!add_tokenizer(s, source, vocabulary, to, lost)) return std::nullopt;
  add_widened(conversion, to);
  if (!of_config->lost.empty()) lost.push_back(config.name + ": " + listed(of_config->lost, 60));
  Metadata metadata = to.build();

  // The way back must give the same configuration.
  sema::ConfigInput back;
  back.name = fs::path(s.options.files[2]).filename().string();
  std::set<std::string> names;
  for (const ConvertedTensor& t : tensors) names.insert(t.name);
  auto tree = sema::config_of_metadata(*s.imports,
                                       {metadata, [&](std::string_view t) { return names.contains(std::string(t)); }, back.name}, s.sink);
  if (!tree) return std::nullopt;
  back.tree = std::move(*tree);
  const auto differences = sema::config_differences(s.sources, *s.imports, config, back, s.sink);
  if (!differences) return std::nullopt;
  if (!differences->empty()) {
    auto message = s.sink.error(
        code::cannot_write, s.options.files[2],
        "the configuration has " + counted(differences->size(), "value") + " that the metadata of a GGUF file would not give back");
    for (const std::string& d : *differences) message.note(d);
    message.help("a line `key = arch.key` for it in `checkpoint gguf { config { … } }` of the model");
    return std::nullopt;
  }
  return metadata;
}

std::optional<std::vector<SideFile>> folder_files(Session& s, const CheckpointIndex& source, const sema::ConfigInput& config, bool decoded,
                                                  std::vector<std::string>& lost) {
  std::vector<SideFile> out;
  const auto add = [&](const char* name, const Json& j) {
    if (!j.is_null()) out.push_back({name, dump(j, 2) + "\n"});
  };
  Json tree = config.tree;
  if (source.metadata && tree.as_object() != nullptr)
    for (const std::string& key : sema::keys_of_file(s.sources, *s.imports, config)) tree.as_object()->erase(key);
  if (decoded && tree.as_object() != nullptr && tree.as_object()->erase("quantization_config"))
    lost.push_back("config.json: quantization_config, as the tensors are plain now");
  for (const auto& o : config.overrides)
    lost.push_back("--set " + o.key + " holds for this run; " + "the configuration is written as the checkpoint has it");
  if (source.metadata) {
    add("config.json", tree);
    if (!s.options.no_tokenizer && has_tokenizer(source)) {
      auto files = folder_tokenizer(*source.metadata, source.files().empty() ? source.path : source.files()[0].label);
      if (!files) {
        refuse(s, source.path, files.error());
        return std::nullopt;
      }
      add("tokenizer.json", files->tokenizer);
      add("tokenizer_config.json", files->tokenizer_config);
      add("generation_config.json", files->generation_config);
    } else if (s.options.no_tokenizer) {
      lost.push_back("the tokenizer, by --no-tokenizer");
    }
    std::vector<std::string> keys;
    const auto architecture = source.metadata->find("general.architecture");
    const std::string own = (architecture && architecture->as_string() ? std::string(*architecture->as_string()) : std::string()) + ".";
    for (const std::string_view key : source.metadata->keys())
      if (!key.starts_with(own) && !key.starts_with("tokenizer.") && !key.starts_with(own_prefix) && !key.starts_with("split.") &&
          key != "general.architecture" && key != "general.file_type" && key != "general.quantization_version" &&
          key != "general.alignment")
        keys.push_back(printable(key));
    if (!keys.empty()) lost.push_back("metadata: " + listed(keys, 60));
    return out;
  }
  // A folder's own files, as they are.
  std::error_code ignored;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source.path, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") || !entry.is_regular_file(ignored) || is_weights(entry.path())) continue;
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name == "config.json" && decoded) {
      add("config.json", tree);
      continue;
    }
    auto text = read_text_file((fs::path(source.path) / name).string());
    if (!text) {
      s.sink.error(code::checkpoint_unreadable, name, text.error());
      return std::nullopt;
    }
    out.push_back({name, std::move(*text)});
  }
  if (std::find(names.begin(), names.end(), "config.json") == names.end()) add("config.json", tree);
  return out;
}

}  // namespace modelc::driver
