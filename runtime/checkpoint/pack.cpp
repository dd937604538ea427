#include "runtime/checkpoint/pack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "runtime/abi/version.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/json.h"
#include "runtime/base/strings.h"

namespace modelc {
namespace {

constexpr std::string_view magic = "MODELCPK", end_magic = "PACKDIR1";
// Raised when the form changes, or what a load makes of a checkpoint.
constexpr std::uint32_t pack_version = 1;
constexpr std::uint64_t alignment = 64, head_bytes = 64, tail_bytes = 40;
constexpr std::uint64_t max_directory = std::uint64_t{1} << 30;

// 128 bits over any number of bytes: two multiplicative mixes of words, with the length. Against chance and change, not
// against an attacker: whoever can write a pack can write the checkpoint.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size();) {
      if (held_ == 0 && bytes.size() - i >= 8) {
        std::uint64_t w = 0;
        std::memcpy(&w, bytes.data() + i, 8);
        mix(w);
        i += 8;
        continue;
      }
      word_ |= std::to_integer<std::uint64_t>(bytes[i++]) << 8 * held_;
      if (++held_ == 8) {
        mix(word_);
        word_ = 0;
        held_ = 0;
      }
    }
    size_ += bytes.size();
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
  std::array<std::uint64_t, 2> value() const {
    Hash end = *this;
    end.mix(word_);
    end.mix(size_);
    return {end.a_ ^ (end.a_ >> 29), end.b_ ^ (end.b_ >> 31)};
  }
  std::string text() const {
    std::string s;
    for (std::uint64_t v : value())
      for (int i = 60; i >= 0; i -= 4) s += "0123456789abcdef"[v >> i & 15];
    return s;
  }

 private:
  void mix(std::uint64_t w) {
    a_ = (a_ ^ w) * 0x9E3779B97F4A7C15U;
    a_ ^= a_ >> 32;
    b_ = (b_ + w) * 0xC2B2AE3D27D4EB4FU;
    b_ ^= b_ >> 29;
  }
  std::uint64_t a_ = 0x6A09E667F3BCC908U, b_ = 0xBB67AE8584CAA73BU, word_ = 0, size_ = 0;
  unsigned held_ = 0;
};

Result<std::string> hash_of(const CheckpointFile& f, std::uint64_t bytes) {
  auto file = ReadFile::open(f.path);
  if (!file) return std::move(file.error());
  Hash hash;
  std::vector<std::byte> some(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 1U << 20)));
  for (std::uint64_t at = 0; at < bytes;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(some.size(), bytes - at));
    if (Status s = file->read_at(at, std::span(some).first(n)); !s) return std::move(s.error());
    hash.add(std::span<const std::byte>(some).first(n));
    at += n;
  }
  return hash.text();
}

std::string plan_hash(const CheckpointIndex& checkpoint, const std::vector<MappingWeight>& weights, const Mapping& mapping) {
  Hash hash;
  const auto put = [&](std::string_view text) {
    hash.add(std::to_string(text.size()) + ":");
    hash.add(text);
  };
  const auto tensor = [&](std::size_t t) {
    const TensorInfo& info = checkpoint.tensors()[t];
    put(info.name);
    put(std::to_string(info.file) + "," + std::to_string(info.offset) + "," + std::to_string(info.size));
  };
  const auto source = [&](const WeightSource& s, const auto& self) -> void {
    put(std::to_string(static_cast<int>(s.kind)) + "," + std::to_string(s.pick) + "," + std::to_string(s.parts.size()));
    for (const WeightPart& p : s.parts) {
      tensor(p.tensor);
      put(std::to_string(p.first) + "," + std::to_string(p.rows));
      if (p.encode) put(mapping.encodes[*p.encode].value + " " + mapping.encodes[*p.encode].axes);
      for (std::size_t t : p.coded) tensor(t);
    }
    if (s.plan)
      for (const Transform& t : s.plan->steps) put(text(t));
    if (s.cast) put(name(*s.cast));
    if (s.own) self(*s.own, self);
  };
  for (std::size_t i = 0; i < weights.size(); ++i) {
    put(weights[i].name);
    put(shape_text(weights[i].shape));
    source(mapping.sources[i], source);
  }
  return hash.text();
}

Json json_of(const PackKey& key) {
  JsonObject j;
  j.set("model", key.model);
  j.set("layout", key.layout);
  j.set("plan", key.plan);
  j.set("program", key.program);
  JsonArray sources;
  for (const PackKey::Source& s : key.sources) {
    JsonObject o;
    o.set("file", s.file);
    o.set("size", s.size);
    o.set("modified", s.modified);
    o.set("header", s.header);
    if (!s.all.empty()) o.set("all", s.all);
    sources.emplace_back(std::move(o));
  }
  j.set("sources", std::move(sources));
  return Json(std::move(j));
}

constexpr const char* way_out = "`modelc pack` writes it again";

Error bad(const std::string& path, const std::string& why) {
  return Error{"pack-format", quote(path) + " is not used: " + why, {}, way_out};
}

std::uint64_t load64(const std::byte* p) {
  std::uint64_t v = 0;
  for (int i = 7; i >= 0; --i) v = v << 8 | std::to_integer<std::uint64_t>(p[i]);
  return v;
}
std::string text64(std::uint64_t v) {
  std::string s;
  for (int i = 0; i < 8; ++i) s += static_cast<char>(v >> 8 * i & 0xff);
  return s;
}

// A member of the directory: of its kind, or nothing.
std::string word(const Json& j, std::string_view key) {
  const Json* v = j.find(key);
  return v != nullptr && v->as_string() != nullptr ? *v->as_string() : std::string();
}
std::optional<std::uint64_t> count(const Json& j, std::string_view key) {
  const Json* v = j.find(key);
  return v != nullptr ? v->as_uint() : std::nullopt;
}

struct Contents {
  PackKey key;
  std::string data_hash;
  std::span<const std::byte> data;
  std::vector<PackWeight> weights;
  std::vector<std::string> notes;
};

std::optional<PackBlock> block_of(const Json& b, const PackKey& key, std::uint64_t data_end) {
  const auto encoding = encoding_from_name(word(b, "encoding"));
  const auto rows = count(b, "rows"), row_bytes = count(b, "row_bytes"), offset = count(b, "offset");
  std::uint64_t bytes = 0;
  if (!encoding || !rows || !row_bytes || !offset || *rows > INT64_MAX || *row_bytes > INT64_MAX ||
      __builtin_mul_overflow(*rows, *row_bytes, &bytes) || bytes > INT64_MAX)
    return std::nullopt;
  PackBlock block{*encoding, static_cast<std::int64_t>(*rows), static_cast<std::int64_t>(*row_bytes), {}, *offset};
  std::uint64_t begin = head_bytes, end = data_end;
  if (b.find("source") != nullptr) {
    const auto source = count(b, "source");
    if (!source || *source >= key.sources.size()) return std::nullopt;
    block.source = static_cast<std::uint32_t>(*source);
    begin = 0;
    end = key.sources[*source].size;
  }
  if (*offset < begin || *offset > end || bytes > end - *offset) return std::nullopt;
  return block;
}

// Nothing of a pack is trusted more than of any other file: each block lies in the file that it names.
Result<Contents> contents(const std::string& path, const MappedFile& file) {
  const std::uint64_t size = file.size();
  if (size < head_bytes + tail_bytes || file.text().substr(0, magic.size()) != magic) return bad(path, "it does not begin as a pack");
  if (file.text().substr(size - end_magic.size()) != end_magic) return bad(path, "it is cut short, or not a pack");
  std::uint32_t version = 0;
  for (int i = 3; i >= 0; --i)
    version = version << 8 | std::to_integer<std::uint32_t>(file.data()[magic.size() + static_cast<std::size_t>(i)]);
  if (version != pack_version)
    return Error{"pack-foreign",
                 quote(path) + " is not used: its form is of version " + std::to_string(version) + ", and this program's of " +
                     std::to_string(pack_version),
                 {},
                 way_out};
  const std::byte* tail = file.data() + (size - tail_bytes);
  const std::uint64_t at = load64(tail), length = load64(tail + 8), end = size - tail_bytes;
  if (at < head_bytes || at > end || length != end - at || length > max_directory)
    return bad(path, "its directory is not where it should be");
  Hash hash;
  hash.add(file.text().substr(at, length));
  if (hash.value() != std::array{load64(tail + 16), load64(tail + 24)}) return bad(path, "its directory is damaged");
  auto root = parse_json(file.text().substr(at, length), {.name = path, .max_bytes = max_directory});
  if (!root) return bad(path, root.error().message);
  Contents out;
  out.data = file.bytes().subspan(head_bytes, at - head_bytes);
  const Json* key = root->find("key");
  const Json* weights = root->find("weights");
  if (key == nullptr || weights == nullptr || weights->as_array() == nullptr) return bad(path, "its directory lacks a part");
  out.key = {word(*key, "model"), word(*key, "layout"), word(*key, "plan"), word(*key, "program"), {}};
  out.data_hash = word(*root, "data");
  if (const Json* sources = key->find("sources"); sources != nullptr && sources->as_array() != nullptr)
    for (const Json& s : *sources->as_array()) {
      const Json* modified = s.find("modified");
      out.key.sources.push_back({word(s, "file"), count(s, "size").value_or(0), modified != nullptr ? modified->as_int().value_or(0) : 0,
                                 word(s, "header"), word(s, "all")});
    }
  if (const Json* notes = root->find("notes"); notes != nullptr && notes->as_array() != nullptr)
    for (const Json& n : *notes->as_array())
      if (n.as_string() != nullptr) out.notes.push_back(printable(*n.as_string(), 1000));
  for (const Json& w : *weights->as_array()) {
    PackWeight weight{word(w, "name"), {}};
    const Json* blocks = w.find("blocks");
    if (blocks == nullptr || blocks->as_array() == nullptr) return bad(path, "a weight has no blocks");
    for (const Json& b : *blocks->as_array()) {
      const auto block = block_of(b, out.key, at);
      if (!block) return bad(path, "a block of " + quote(weight.name) + " does not lie in its file");
      weight.blocks.push_back(*block);
    }
    out.weights.push_back(std::move(weight));
  }
  return out;
}

}  // namespace

Result<PackKey> pack_key(std::string model, std::string layout, const CheckpointIndex& checkpoint,
                         const std::vector<MappingWeight>& weights, const Mapping& mapping, bool full) {
  PackKey key{std::move(model),
              std::move(layout),
              plan_hash(checkpoint, weights, mapping),
              std::string(MODELC_VERSION) + "/" + std::to_string(generated_code_version),
              {}};
  for (const CheckpointFile& f : checkpoint.files()) {
    if (f.memory) return Error{"pack-memory", "a checkpoint that lies in no file has no pack", {}, {}};
    auto header = hash_of(f, f.header_bytes);
    if (!header) return std::move(header.error());
    PackKey::Source s{std::filesystem::path(f.label).filename().string(), f.size, f.modified, std::move(*header), {}};
    if (full) {
      auto all = hash_of(f, f.size);
      if (!all) return std::move(all.error());
      s.all = std::move(*all);
    }
    key.sources.push_back(std::move(s));
  }
  return key;
}

std::string pack_path(const CheckpointIndex& checkpoint, const std::string& model, const std::string& layout) {
  const std::string name = to_lower_ascii(model) + "." + layout + ".pack";
  std::error_code ignored;
  if (std::filesystem::is_directory(checkpoint.path, ignored)) return (std::filesystem::path(checkpoint.path) / name).string();
  return (checkpoint.files().empty() ? checkpoint.path : checkpoint.files()[0].path) + "." + name;
}

// ---- writing

struct PackWriter::State {
  explicit State(AtomicFile f) : file(std::move(f)) {}
  AtomicFile file;
  Hash data;
  std::uint64_t at = 0;
  std::vector<PackWeight> weights;
  std::map<const void*, std::uint64_t> written;            // offsets by identity
};

PackWriter::PackWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
PackWriter::PackWriter(PackWriter&&) noexcept = default;
PackWriter::~PackWriter() = default;

Result<PackWriter> PackWriter::create(const std::string& path) {
  auto file = AtomicFile::create(path);
  if (!file) return std::move(file.error());
  auto state = std::make_unique<State>(std::move(*file));
  std::string head(magic);
  for (int i = 0; i < 4; ++i) head += static_cast<char>(pack_version >> 8 * i & 0xff);
  head.resize(head_bytes, '\0');
  if (Status s = state->file.write(head); !s) return std::move(s.error());
  state->at = head_bytes;
  return PackWriter(std::move(state));
}

void PackWriter::begin(std::string weight) { state_->weights.push_back({std::move(weight), {}}); }

void PackWriter::refer(const PackBlock& block) { state_->weights.back().blocks.push_back(block); }

Status PackWriter::add(PackBlock block, std::span<const std::byte> bytes, const void* identity) {
  block.source.reset();
  block.offset = state_->at;
  if (identity != nullptr) {
    const auto [known, fresh] = state_->written.emplace(identity, block.offset);
    if (!fresh) {
      block.offset = known->second;
      refer(block);
      return {};
    }
  }
  const std::string padding((alignment - bytes.size() % alignment) % alignment, '\0');
  if (Status s = state_->file.write(bytes); !s) return s;
  if (Status s = state_->file.write(padding); !s) return s;
  state_->data.add(bytes);
  state_->data.add(padding);
  state_->at += bytes.size() + padding.size();
  refer(block);
  return {};
}

Status PackWriter::commit(const PackKey& key, const std::vector<std::string>& notes) {
  JsonArray weights, said;
  for (const PackWeight& w : state_->weights) {
    JsonArray blocks;
    for (const PackBlock& b : w.blocks) {
      JsonObject o;
      o.set("encoding", name(b.encoding));
      o.set("rows", b.rows);
      o.set("row_bytes", b.row_bytes);
      if (b.source) o.set("source", static_cast<std::int64_t>(*b.source));
      o.set("offset", b.offset);
      blocks.emplace_back(std::move(o));
    }
    JsonObject o;
    o.set("name", w.name);
    o.set("blocks", std::move(blocks));
    weights.emplace_back(std::move(o));
  }
  for (const std::string& note : notes) said.emplace_back(note);
  JsonObject root;
  root.set("key", json_of(key));
  root.set("data", state_->data.text());
  root.set("notes", std::move(said));
  root.set("weights", std::move(weights));
  const std::string directory = dump(Json(std::move(root)));
  Hash hash;
  hash.add(directory);
  if (Status s = state_->file.write(directory); !s) return s;
  const std::string tail = text64(state_->at) + text64(directory.size()) + text64(hash.value()[0]) + text64(hash.value()[1]);
  if (Status s = state_->file.write(tail + std::string(end_magic)); !s) return s;
  return state_->file.commit();
}

// ---- reading

Error Pack::unfit(const std::string& why) const { return bad(file_->path(), why); }

Result<Pack> Pack::open(const std::string& path, const PackKey& key, const CheckpointIndex& checkpoint, FileAccess access) {
  auto file = MappedFile::open(path, access);
  if (!file) return std::move(file.error());
  auto found = contents(path, *file);
  if (!found) return std::move(found.error());
  const auto foreign = [&](const std::string& why) { return Error{"pack-foreign", quote(path) + " is not used: " + why, {}, way_out}; };
  const auto stale = [&](const std::string& why) { return Error{"pack-stale", quote(path) + " is out of date: " + why, {}, way_out}; };
  const PackKey& have = found->key;
  if (have.program != key.program) return foreign("it is of version " + printable(have.program) + ", and this program of " + key.program);
  if (have.model != key.model) return foreign("it is of the model " + quote(have.model) + ", not of " + quote(key.model));
  if (have.layout != key.layout) return foreign("its layout is " + quote(have.layout) + ", and this device's is " + quote(key.layout));
  if (have.sources.size() != key.sources.size())
    return stale("it was made of " + counted(have.sources.size(), "file") + ", and the checkpoint has " +
                 std::to_string(key.sources.size()));
  for (std::size_t i = 0; i < key.sources.size(); ++i) {
    const PackKey::Source &was = have.sources[i], &is = key.sources[i];
    if (was.file != is.file) return stale("it was made of " + quote(was.file) + ", not of " + quote(is.file));
    if (was.size != is.size) return stale(quote(is.file) + " had " + grouped(was.size) + " bytes, and now has " + grouped(is.size));
    if (was.header != is.header) return stale("the header of " + quote(is.file) + " has changed");
    if (!is.all.empty() && was.all.empty()) return stale("it holds no hash of every byte of " + quote(is.file));
    if (was.modified == is.modified && is.all.empty()) continue;
    if (was.all.empty()) return stale(quote(is.file) + " was written to, or copied, since");
    std::string all = is.all;
    if (all.empty()) {
      auto made = hash_of(checkpoint.files()[i], is.size);
      if (!made) return std::move(made.error());
      all = std::move(*made);
    }
    if (all != was.all) return stale("bytes of " + quote(is.file) + " have changed");
  }
  if (have.plan != key.plan) return stale("the model now makes its weights of the checkpoint in another way");
  const bool full = std::any_of(key.sources.begin(), key.sources.end(), [](const auto& s) { return !s.all.empty(); });
  if (full) {
    Hash data;
    data.add(found->data);
    if (data.text() != found->data_hash) return bad(path, "its data is damaged");
  }
  if (Status s = file->intact(); !s) return bad(path, s.error().message);
  Pack pack;
  pack.weights_ = std::move(found->weights);
  pack.notes_ = std::move(found->notes);
  pack.file_ = std::make_shared<const MappedFile>(std::move(*file));
  return pack;
}

}  // namespace modelc
