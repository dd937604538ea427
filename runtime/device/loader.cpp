#include "runtime/device/loader.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <mutex>

#include "runtime/base/strings.h"
#include "runtime/device/binder.h"
#include "runtime/device/held.h"

namespace modelc {
namespace {

// Weights are made together up to so many bytes, which is what a load holds beside the model; fewer than the second are
// made before a thread has woken up.
constexpr std::int64_t batch_bytes = std::int64_t{256} << 20, parallel_bytes = std::int64_t{1} << 20;

TensorShape shape_of(const Weight& w) { return {w.spec.shape.axes().begin(), w.spec.shape.axes().end()}; }
std::int64_t columns_of(const Weight& w) { return w.spec.shape.rank() > 1 ? w.spec.shape[-1] : 1; }
std::int64_t rows_of(const Weight& w) {
  std::int64_t rows = 1;
  for (int i = 0; i < std::max(w.spec.shape.rank() - 1, 1); ++i) rows *= w.spec.shape[i];
  return rows;
}

RowBlock block_of(Encoding encoding, std::int64_t rows, std::int64_t columns, const Buffer* buffer, std::int64_t offset) {
  const std::int64_t row[] = {columns};
  RowBlock block;
  block.encoding = encoding;
  block.rows = rows;
  block.row_bytes = stored_bytes(encoding, row).value_or(0);
  block.data = {buffer, offset, DType::u8, {rows * block.row_bytes}};
  return block;
}

}  // namespace

Loader::Loader(Residence& here, std::shared_ptr<const CheckpointIndex> index, const std::vector<NamedParameter>& weights,
               const Mapping& mapping, const AdapterMerge& merge, const LoadOptions& options, LoadReport& report)
    : here_(here),
      index_(std::move(index)),
      weights_(weights),
      mapping_(mapping),
      merge_(merge),
      options_(options),
      data_(index_, options.no_mmap ? FileAccess::read : FileAccess::map),
      report_(report) {}

// ---- from the checkpoint

Status Loader::from_checkpoint(const std::vector<bool>* which) {
  const auto wanted = [&](std::size_t i) { return which == nullptr || (*which)[i]; };
  for (std::size_t begin = 0; begin < weights_.size();) {
    std::size_t end = begin;
    std::int64_t bytes = 0;
    const auto bytes_of = [&](std::size_t i) { return wanted(i) ? bytes_to_make(i) : 0; };
    do bytes += bytes_of(end++);
    while (end < weights_.size() && bytes + bytes_of(end) <= batch_bytes);
    std::vector<std::optional<Result<Made>>> made(end - begin);
    std::exception_ptr thrown;
    std::mutex lock;
    const auto some = [&](std::int64_t first, std::int64_t last, int) {
      try {
        for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k)
          if (wanted(begin + k)) made[k].emplace(make(begin + k));
      } catch (...) {
        const std::lock_guard held(lock);
        if (!thrown) thrown = std::current_exception();
      }
    };
    const auto n = static_cast<std::int64_t>(made.size());
    if (n > 1 && bytes >= parallel_bytes) {
      if (!team_) team_ = std::make_unique<ThreadTeam>(options_.cpu.threads);
      team_->run(n, 1, some);
    } else {
      some(0, n, 0);
    }
    if (thrown) std::rethrow_exception(thrown);
    for (std::size_t k = 0; k < made.size(); ++k) {
      if (!made[k]) continue;
      if (!*made[k]) return std::move(made[k]->error());
      if (Status s = place(begin + k, std::move(**made[k])); !s) return s;
      made[k].reset();
      say_progress(begin + k + 1);
    }
    begin = end;
  }
  note_decoded();
  return {};
}

bool Loader::reads(const Weight& w, Encoding encoding) const { return here_.device->member(w.member).reads(encoding, use_of(w.spec.role)); }

bool Loader::stays(std::size_t i) const {
  const Weight& w = *weights_[i].weight;
  return !merge_.changes(i) && stays_as_stored(*index_, mapping_.sources[i], w.spec.role, here_.device->member(w.member));
}

std::int64_t Loader::bytes_to_make(std::size_t i) const {
  const WeightSource& source = mapping_.sources[i];
  if (source.kind == WeightSource::Kind::default_value || (stays(i) && !source.own)) return 0;
  return weights_[i].weight->spec.shape.count() * bytes(DType::f32);
}

Result<Loader::Made> Loader::make(std::size_t i) {
  const WeightSource& source = mapping_.sources[i];
  const std::string& name = weights_[i].name;
  const Weight& w = *weights_[i].weight;
  const TensorShape shape = shape_of(w);
  Made made;
  if (source.kind == WeightSource::Kind::default_value) {
    if (merge_.changes(i)) return Error{"adapter", name + ": an adapter changes it, and the checkpoint has no such weight", {}, {}};
    return made;
  }
  if (source.own) {
    auto note = compare_alias(data_, mapping_, source, name, shape);
    if (!note) return std::move(note.error());
    made.note = std::move(*note);
  }
  if (stays(i)) return made;
  if (!merge_.changes(i)) {
    if (Status s = make_of(source, w, made); !s) return std::move(s.error());
    return made;
  }
  auto base = read_weight(data_, mapping_, source, shape);
  if (!base) return std::move(base.error());
  auto changed = merge_.apply(i, *base);
  if (!changed) return std::move(changed.error());
  if (changed->encoding != base->encoding) made.widened = base->encoding;
  WeightSource merged;
  merged.kind = WeightSource::Kind::given;
  auto value = WeightValue::of(changed->encoding, shape, changed->bytes);
  if (!value) return std::move(value.error());
  merged.value = std::move(*value);
  if (Status s = make_of(merged, w, made); !s) return std::move(s.error());
  return made;
}

Status Loader::make_of(const WeightSource& source, const Weight& w, Made& made) {
  const Encoding stored = read_encoding(*index_, source);
  if (made_as(*index_, source, w.spec.role, here_.device->member(w.member)) == stored && w.spec.role != WeightRole::vector) {
    auto rows = read_weight(data_, mapping_, source, shape_of(w));
    if (!rows) return std::move(rows.error());
    assert(rows->encoding == stored);
    made.rows = std::move(*rows);
    return {};
  }
  if (w.spec.role != WeightRole::vector && block_elements(stored) > 1) made.decoded = stored;
  auto values = read_weight_f32(data_, mapping_, source, shape_of(w));
  if (!values) return std::move(values.error());
  made.values = std::move(*values);
  return {};
}

Status Loader::place(std::size_t i, Made made) {
  const WeightSource& source = mapping_.sources[i];
  Weight& w = *weights_[i].weight;
  here_.device->enter(w.member);
  describe_weight(i);
  if (!made.note.empty()) notes_.push_back(made.note);
  if (made.decoded) ++decoded_[*made.decoded];
  if (made.widened) ++widened_[*made.widened];
  if (source.kind == WeightSource::Kind::default_value)
    return set_values(w, std::vector<float>(static_cast<std::size_t>(w.spec.shape.count()), static_cast<float>(*w.spec.default_value)));
  if (made.values) return set_values(w, *made.values);
  if (made.rows) return set_rows(w, made.rows->encoding, made.rows->bytes);
  std::vector<RowBlock> blocks;
  const std::int64_t columns = columns_of(w);
  for (const WeightPart& p : source.parts) {
    const TensorInfo& info = index_->tensors()[p.tensor];
    auto pieces = placed(info, w);
    if (!pieces) return std::move(pieces.error());
    // A row of the tensor holds so many elements: whole rows of the matrix.
    const std::int64_t rows = info.shape.empty() ? 1 : info.shape[0];
    const std::int64_t width = rows > 0 ? info.elements() / rows : 0;
    const auto row_of = [&](std::int64_t tensor_row) { return columns > 0 ? tensor_row * width / columns : 0; };
    const std::int64_t row[] = {columns};
    const std::int64_t row_bytes = stored_bytes(info.encoding, row).value_or(0);
    for (const Piece& piece : *pieces) {
      const std::int64_t begin = std::max(row_of(p.first), piece.first);
      const std::int64_t end = std::min(row_of(p.first + p.rows), piece.first + piece.rows);
      if (begin < end) blocks.push_back(block_of(info.encoding, end - begin, columns, piece.buffer, (begin - piece.first) * row_bytes));
    }
  }
  return set_blocks(w, std::move(blocks));
}

// ---- the report

void Loader::describe_weight(std::size_t i) {
  const WeightSource& source = mapping_.sources[i];
  Weight& w = *weights_[i].weight;
  ++report_.weights;
  if (source.kind == WeightSource::Kind::default_value) {
    w.source = "default " + shortest(*w.spec.default_value);
    return;
  }
  count(source);
  w.source =
      source.kind == WeightSource::Kind::alias ? "alias of " + index_->tensors()[source.parts[0].tensor].name : describe(*index_, source);
  if (merge_.changes(i)) w.source += ", with an adapter";
}

void Loader::count(const WeightSource& source) {
  if (source.value) {
    report_.parameters += element_count(source.value->shape()).value_or(0);
    report_.bytes += static_cast<std::int64_t>(source.value->bytes().size());
  }
  for (const WeightPart& part : source.parts)
    for (std::size_t t : part.coded.empty() ? std::vector<std::size_t>{part.tensor} : part.coded) {
      if (!seen_.insert(t).second) continue;
      const TensorInfo& info = index_->tensors()[t];
      report_.parameters += info.elements();
      report_.bytes += static_cast<std::int64_t>(info.size);
    }
}

void Loader::say_progress(std::size_t done) {
  if (!options_.progress) return;
  options_.progress({static_cast<std::int64_t>(done), static_cast<std::int64_t>(weights_.size()), report_.bytes});
}

// What of the files' encodings no kernel reads; and the notes of single weights.
void Loader::note_decoded() {
  for (const auto& [encoding, n] : decoded_)
    notes_.push_back(counted(n, "weight") + " stored as " + std::string(name(encoding)) +
                     ", which no kernel reads yet: decoded to f32 in memory");
  for (const auto& [encoding, n] : widened_)
    notes_.push_back(counted(n, "weight") + " stored as " + std::string(name(encoding)) + " and changed by an adapter: f32 in memory");
  report_.notes.insert(report_.notes.end(), notes_.begin(), notes_.end());
}

// ---- on the device

const Buffer* Loader::keep(const Buffer* buffer, const std::shared_ptr<const MappedFile>& file) {
  here_.buffers.push_back(buffer);
  here_.lies_in(buffer, file);
  return buffer;
}

// How many rows of the weight's matrix go into one buffer of its device: what is taken together stays together.
std::int64_t Loader::rows_of_buffer(const Weight& w, std::int64_t row_bytes) const {
  const std::int64_t together =
      w.spec.role == WeightRole::table && w.spec.shape.rank() > 2 && w.spec.shape[0] > 0 ? rows_of(w) / w.spec.shape[0] : 1;
  const std::int64_t unit = std::max<std::int64_t>(together * row_bytes, 1);
  return std::max<std::int64_t>(here_.device->member(w.member).largest_buffer() / unit, 1) * together;
}

// A tensor's bytes on the weight's device; placed once, however many weights there are it or rows of it.
Result<std::span<const Loader::Piece>> Loader::placed(const TensorInfo& info, const Weight& w) {
  const auto known = placed_.find({&info, w.member});
  if (known != placed_.end()) return std::span<const Piece>(known->second);
  auto bytes = data_.bytes(info);
  if (!bytes) return std::move(bytes.error());
  const auto at = bytes->size > 0 ? static_cast<std::uint64_t>(bytes->data - bytes->owner->data()) : 0;
  const std::int64_t rows = columns_of(w) > 0 ? info.elements() / columns_of(w) : 0;
  const std::int64_t row_bytes = rows > 0 ? static_cast<std::int64_t>(bytes->size) / rows : 0;
  std::vector<Piece> pieces;
  for (std::int64_t first = 0, step = rows_of_buffer(w, row_bytes); first < std::max<std::int64_t>(rows, 1); first += step) {
    const std::int64_t n = std::min(step, rows - first);
    auto buffer = here_.device->place(bytes->owner, at + static_cast<std::uint64_t>(first * row_bytes), n * row_bytes);
    if (!buffer) return std::move(buffer.error());
    PackBlock from;
    from.source = info.file;
    from.offset = info.offset + static_cast<std::uint64_t>(first * row_bytes);
    origin_.emplace(*buffer, from);
    pieces.push_back({first, n, keep(*buffer, bytes->owner)});
  }
  return std::span<const Piece>(placed_.emplace(std::pair(&info, w.member), std::move(pieces)).first->second);
}

// Makes the blocks, one below the other, the rows of w, a matrix or a table.
Status Loader::set_blocks(Weight& w, std::vector<RowBlock> blocks) {
  w.matrix.columns = columns_of(w);
  std::int64_t first = 0;
  for (RowBlock& b : blocks) {
    b.first = first;
    first += b.rows;
  }
  w.matrix.blocks = std::move(blocks);
  w.matrix.mode = here_.mode;
  if (w.spec.role != WeightRole::table) return {};         // matrices are prepared when they are packed
  return here_.device->prepare(w.matrix, MatrixUse::rows);
}

// Makes copies of these bytes the rows of w.
Status Loader::set_rows(Weight& w, Encoding encoding, std::span<const std::byte> bytes) {
  const std::int64_t row[] = {columns_of(w)};
  const std::int64_t row_bytes = stored_bytes(encoding, row).value_or(0), rows = rows_of(w), step = rows_of_buffer(w, row_bytes);
  std::vector<RowBlock> blocks;
  for (std::int64_t first = 0; first < std::max<std::int64_t>(rows, 1); first += step) {
    const std::int64_t n = std::min(step, rows - first);
    const Tensor t = own_tensor(here_, DType::u8, {n * row_bytes});
    here_.device->write(bytes.subspan(static_cast<std::size_t>(first * row_bytes), static_cast<std::size_t>(n * row_bytes)), t);
    blocks.push_back(block_of(encoding, n, columns_of(w), t.buffer, 0));
  }
  return set_blocks(w, std::move(blocks));
}

Status Loader::set_values(Weight& w, std::span<const float> values) {
  if (w.spec.role != WeightRole::vector) return set_rows(w, Encoding::f32, std::as_bytes(values));
  const Tensor t = own_tensor(here_, DType::f32, w.spec.shape);
  here_.device->write(std::as_bytes(values), t);
  w.tensor = t;
  return {};
}

// ---- packs

Status Loader::fits(const Pack& pack) const {
  std::size_t k = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (mapping_.sources[i].kind == WeightSource::Kind::default_value) continue;
    const Weight& w = *weights_[i].weight;
    const auto wrong = [&](const std::string& why) { return pack.unfit("of " + weights_[i].name + " it has " + why); };
    if (k == pack.weights().size() || pack.weights()[k].name != weights_[i].name) return wrong("nothing, or not in its place");
    const std::vector<PackBlock>& blocks = pack.weights()[k++].blocks;
    const bool vector = w.spec.role == WeightRole::vector;
    const std::int64_t width = vector ? w.spec.shape.count() : columns_of(w);
    std::int64_t left = vector ? 1 : rows_of(w);
    for (const PackBlock& b : blocks) {
      const std::int64_t row[] = {width};
      if (b.row_bytes != stored_bytes(b.encoding, row) || b.rows > left) return wrong("rows of another size");
      if (!b.source && b.offset % 64 != 0) return wrong("rows that are not aligned");
      if (b.rows * b.row_bytes > here_.device->member(w.member).largest_buffer())
        return wrong("more rows than a buffer of the device takes");
      if (vector ? b.encoding != Encoding::f32 || b.source : !reads(w, b.encoding))
        return wrong(std::string(name(b.encoding)) + ", which is not read");
      left -= b.rows;
    }
    if (left != 0 || (vector && blocks.size() != 1)) return wrong("another number of rows");
  }
  return k == pack.weights().size() ? Status() : pack.unfit("it has more weights than the model");
}

Result<const Buffer*> Loader::placed(const PackBlock& block, const Pack& pack) {
  const std::int64_t size = block.rows * block.row_bytes;  // lies in its file: no product that wraps
  const auto key = std::tuple(block.source ? std::int64_t{*block.source} : -1, block.offset, size);
  if (const auto known = packed_.find(key); known != packed_.end()) return known->second;
  std::shared_ptr<const MappedFile> file = pack.file();
  if (block.source) {
    TensorInfo all;                                        // the file as one range: checked to be what it was
    all.file = *block.source;
    all.size = index_->files()[*block.source].size;
    auto bytes = data_.bytes(all);
    if (!bytes) return std::move(bytes.error());
    file = bytes->owner;
  }
  auto buffer = here_.device->place(file, block.offset, size);
  if (!buffer) return std::move(buffer.error());
  packed_.emplace(key, *buffer);
  return keep(*buffer, file);
}

Status Loader::from_pack(const Pack& pack) {
  std::size_t k = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    Weight& w = *weights_[i].weight;
    if (mapping_.sources[i].kind == WeightSource::Kind::default_value) {
      if (Status s = place(i, {}); !s) return s;
      say_progress(i + 1);
      continue;
    }
    describe_weight(i);
    std::vector<RowBlock> blocks;
    for (const PackBlock& b : pack.weights()[k++].blocks) {
      auto buffer = placed(b, pack);
      if (!buffer) return std::move(buffer.error());
      if (w.spec.role == WeightRole::vector) w.tensor = {*buffer, 0, DType::f32, w.spec.shape};
      else blocks.push_back(block_of(b.encoding, b.rows, columns_of(w), *buffer, 0));
    }
    if (w.spec.role != WeightRole::vector)
      if (Status s = set_blocks(w, std::move(blocks)); !s) return s;
    say_progress(i + 1);
  }
  report_.notes.insert(report_.notes.end(), pack.notes().begin(), pack.notes().end());
  return {};
}

Status Loader::write_pack(const std::string& path, const PackKey& key) {
  auto writer = PackWriter::create(path);
  if (!writer) return std::move(writer.error());
  std::vector<std::byte> bytes;
  const auto add = [&](PackBlock block, const Tensor& t, const void* identity) -> Status {
    bytes.resize(static_cast<std::size_t>(t.size()));
    if (Status s = here_.device->read(t, bytes); !s) return s;
    return writer->add(block, bytes, identity);
  };
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (mapping_.sources[i].kind == WeightSource::Kind::default_value) continue;
    const Weight& w = *weights_[i].weight;
    writer->begin(weights_[i].name);
    if (w.spec.role == WeightRole::vector) {
      if (Status s = add({Encoding::f32, 1, w.tensor.size(), {}, 0}, w.tensor, nullptr); !s) return s;
      continue;
    }
    for (const RowBlock& b : w.matrix.blocks) {
      PackBlock block{b.encoding, b.rows, b.row_bytes, {}, 0};
      if (const auto from = origin_.find(b.data.buffer); from != origin_.end()) {
        block.source = from->second.source;
        block.offset = from->second.offset + static_cast<std::uint64_t>(b.data.offset);
        writer->refer(block);
      } else if (Status s = add(block, b.data, b.data.buffer); !s) {  // made blocks fill their buffers
        return s;
      }
    }
  }
  for (const auto& file : here_.files)
    if (Status s = file->intact(); !s) return s;
  return writer->commit(key, notes_);
}

}  // namespace modelc
