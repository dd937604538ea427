#include "runtime/checkpoint/inspect.h"

#include <algorithm>
#include <map>
#include <memory>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/name_patterns.h"

namespace modelc {
namespace {

// Tensors that stand on one line: the same encoding and shape, names that differ in numbers only.
struct Group {
  std::vector<std::string> parts;     // of the name
  std::vector<std::size_t> members;   // positions in index.tensors()
};

std::vector<Group> make_groups(const CheckpointIndex& index, bool every_tensor) {
  const std::vector<TensorInfo>& tensors = index.tensors();
  std::vector<Group> groups;
  if (every_tensor) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      Group g;
      for (std::string_view part : split(tensors[i].name, '.', max_name_parts)) g.parts.emplace_back(part);
      g.members = {i};
      groups.push_back(std::move(g));
    }
    return groups;
  }
  std::map<std::pair<Encoding, std::vector<std::int64_t>>, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < tensors.size(); ++i) alike[{tensors[i].encoding, tensors[i].shape}].push_back(i);
  for (const auto& [key, positions] : alike) {
    std::vector<std::string_view> names;
    for (std::size_t i : positions) names.push_back(tensors[i].name);
    for (NamePattern& p : group_names(std::span<const std::string_view>(names))) {
      for (std::size_t& m : p.members) m = positions[m];
      groups.push_back(Group{std::move(p.parts), std::move(p.members)});
    }
  }
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.members[0] < b.members[0]; });
  return groups;
}

// A part of the module path. A name may end where others go on, so a node may have both a group and children; of two
// groups with the same path (layers that differ in shape have different sets of numbers, so only repeated names) both
// are kept.
struct Node {
  std::string label;
  std::vector<std::unique_ptr<Node>> children;
  std::map<std::string, Node*, std::less<>> by_label;
  std::vector<const Group*> groups;
};

void insert(Node& root, const Group& group) {
  Node* at = &root;
  for (const std::string& part : group.parts) {
    Node*& next = at->by_label[part];
    if (!next) {
      at->children.push_back(std::make_unique<Node>());
      next = at->children.back().get();
      next->label = part;
    }
    at = next;
  }
  at->groups.push_back(&group);
}

struct Line {
  std::size_t indent;
  std::string label;
  const Group* group;   // null: a module
};

// A module with one child and nothing else stands on the child's line.
void flatten(const Node& node, std::size_t indent, const std::string& prefix, std::vector<Line>& lines) {
  const std::string label = prefix.empty() ? node.label : prefix + "." + node.label;
  if (node.groups.empty() && node.children.size() == 1) {
    flatten(*node.children[0], indent, label, lines);
    return;
  }
  if (node.groups.empty()) lines.push_back(Line{indent, label, nullptr});
  for (const Group* g : node.groups) lines.push_back(Line{indent, label, g});
  for (const auto& child : node.children) flatten(*child, indent + 1, {}, lines);
}

std::string padded(std::string text, std::size_t width) {
  // Columns are counted in characters: continuation bytes take no room.
  const auto shown = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
  if (shown < width) text.append(width - shown, ' ');
  return text;
}

std::string files_of(const CheckpointIndex& index, const Group& group) {
  std::vector<std::uint32_t> files;
  for (std::size_t m : group.members) files.push_back(index.tensors()[m].file);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  if (files.size() == 1) return printable(index.files()[files[0]].label);
  return counted(files.size(), "file");
}

std::string tree_text(const CheckpointIndex& index, bool every_tensor) {
  const std::vector<Group> groups = make_groups(index, every_tensor);
  Node root;
  for (const Group& g : groups) insert(root, g);
  std::vector<Line> lines;
  for (const auto& child : root.children) flatten(*child, 0, {}, lines);

  struct Columns {
    std::string name, encoding, shape, size, file;
  };
  constexpr std::size_t widest_name = 64;
  std::vector<Columns> rows;
  std::size_t name_width = 0, encoding_width = 0, shape_width = 0, size_width = 0;
  for (const Line& line : lines) {
    Columns c;
    c.name = std::string(line.indent * 2, ' ') + printable(line.label);
    if (line.group) {
      const TensorInfo& t = index.tensors()[line.group->members[0]];
      const std::size_t n = line.group->members.size();
      c.encoding = name(t.encoding);
      c.shape = shape_text(t.shape);
      c.size = (n > 1 ? grouped(static_cast<std::uint64_t>(n)) + " x " : std::string()) + human_bytes(t.size);
      if (index.files().size() > 1) c.file = files_of(index, *line.group);
      name_width = std::max(name_width, std::min(c.name.size(), widest_name));
      encoding_width = std::max(encoding_width, c.encoding.size());
      shape_width = std::max(shape_width, c.shape.size());
      size_width = std::max(size_width, c.size.size());
    }
    rows.push_back(std::move(c));
  }
  std::string out;
  for (const Columns& c : rows) {
    std::string line = c.name;
    if (!c.encoding.empty())
      line = padded(c.name, name_width) + "  " + padded(c.encoding, encoding_width) + "  " + padded(c.shape, shape_width) + "  " +
             padded(c.size, size_width) + "  " + c.file;
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string_view format_name(CheckpointFormat format) { return format == CheckpointFormat::gguf ? "gguf" : "safetensors"; }

std::vector<std::pair<std::string, std::string>> companions(const CheckpointIndex& index) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const char* key, const std::string& path) {
    if (!path.empty()) out.emplace_back(key, path);
  };
  if (index.config) add("config.json", index.config->path);
  add("generation_config.json", index.generation_config_json);
  add("tokenizer.json", index.tokenizer_json);
  add("tokenizer_config.json", index.tokenizer_config_json);
  add("chat_template.jinja", index.chat_template);
  return out;
}

Json json_of(const MetadataValue& value) {
  if (const auto text = value.as_string()) return *text;
  if (const auto flag = value.as_bool()) return *flag;
  if (const auto n = value.as_int()) return *n;
  if (const auto n = value.as_uint()) return *n;
  if (const auto n = value.as_double()) return *n;
  JsonArray out;
  for (std::size_t i = 0; i < value.size(); ++i) out.push_back(json_of(value.at(i)));
  return out;
}

struct EncodingSum {
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

std::map<Encoding, EncodingSum> sums(const CheckpointIndex& index) {
  std::map<Encoding, EncodingSum> out;
  for (const TensorInfo& t : index.tensors()) {
    ++out[t.encoding].tensors;
    out[t.encoding].bytes += t.size;
  }
  return out;
}

}  // namespace

std::string inspect_text(const CheckpointIndex& index, const InspectOptions& options) {
  std::string out = printable(index.path, 1000) + ": " + std::string(format_name(index.format)) + ", " +
                    counted(index.files().size(), "file") + ", " + counted(index.tensors().size(), "tensor") + ", " +
                    counted(static_cast<std::uint64_t>(index.total_elements()), "element") + ", " + human_bytes(index.total_bytes()) + "\n";
  const std::map<Encoding, EncodingSum> by_encoding = sums(index);
  if (!by_encoding.empty()) {
    std::vector<std::string> parts;
    for (const auto& [encoding, sum] : by_encoding)
      parts.push_back(std::string(name(encoding)) + " " + counted(sum.tensors, "tensor") + " " + human_bytes(sum.bytes));
    out += "encodings: " + join(parts, "; ") + "\n";
  }
  if (const auto beside = companions(index); !beside.empty()) {
    std::vector<std::string> names;
    for (const auto& [key, path] : beside) names.push_back(key);
    out += "beside: " + join(names, ", ") + "\n";
  }
  for (const std::string& note : index.notes) out += "note: " + note + "\n";
  if (!index.tensors().empty()) out += "\n" + tree_text(index, options.every_tensor);
  for (const CheckpointFile& file : index.files()) {
    if (file.metadata.empty()) continue;
    out += "\nmetadata of " + printable(file.label) + "\n";
    for (const auto& [key, value] : file.metadata) out += "  " + printable(key) + " = " + quote(value, options.metadata_limit) + "\n";
  }
  if (index.metadata && !index.metadata->empty()) {
    out += "\nmetadata\n";
    for (std::size_t i = 0; i < index.metadata->size(); ++i) {
      const MetadataValue value = index.metadata->value(i);
      std::string type(name(value.type()));
      if (value.is_array()) type = std::string(name(value.element_type())) + "[" + grouped(std::uint64_t{value.size()}) + "]";
      out += "  " + printable(index.metadata->key(i)) + ": " + type + " = " + value.text(8, options.metadata_limit) + "\n";
    }
  }
  return out;
}

std::string inspect_json(const CheckpointIndex& index) {
  JsonObject root;
  root.set("path", index.path);
  root.set("format", format_name(index.format));
  JsonArray files;
  for (const CheckpointFile& f : index.files()) {
    JsonObject file, metadata;
    for (const auto& [key, value] : f.metadata) metadata.set(key, value);
    file.set("name", f.label);
    file.set("path", f.path);
    file.set("bytes", f.size);
    file.set("header_bytes", std::uint64_t{f.header_bytes});
    file.set("metadata", std::move(metadata));
    files.emplace_back(std::move(file));
  }
  root.set("files", std::move(files));
  JsonArray tensors;
  for (const TensorInfo& t : index.tensors()) {
    JsonObject tensor;
    JsonArray shape;
    for (std::int64_t d : t.shape) shape.emplace_back(d);
    tensor.set("name", t.name);
    tensor.set("dtype", name(t.encoding));
    tensor.set("shape", std::move(shape));
    tensor.set("bytes", t.size);
    tensor.set("file", index.file_of(t).label);
    tensor.set("offset", t.offset);
    tensors.emplace_back(std::move(tensor));
  }
  root.set("tensors", std::move(tensors));
  JsonObject encodings;
  for (const auto& [encoding, sum] : sums(index)) {
    JsonObject entry;
    entry.set("tensors", std::uint64_t{sum.tensors});
    entry.set("bytes", sum.bytes);
    encodings.set(name(encoding), std::move(entry));
  }
  root.set("encodings", std::move(encodings));
  JsonObject beside;
  for (const auto& [key, path] : companions(index)) beside.set(key, path);
  root.set("beside", std::move(beside));
  if (index.metadata) {
    JsonObject metadata;
    for (std::size_t i = 0; i < index.metadata->size(); ++i) metadata.set(index.metadata->key(i), json_of(index.metadata->value(i)));
    root.set("metadata", std::move(metadata));
  }
  root.set("config", index.config ? index.config->root : Json(nullptr));
  root.set("elements", index.total_elements());
  root.set("bytes", index.total_bytes());
  JsonArray notes;
  for (const std::string& note : index.notes) notes.emplace_back(note);
  root.set("notes", std::move(notes));
  return dump(Json(std::move(root))) + "\n";
}

}  // namespace modelc
