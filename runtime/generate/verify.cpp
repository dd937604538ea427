// verify(): the file of expected tensors, the two passes, the comparison.
#include <algorithm>
#include <map>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/tensor_data.h"
#include "runtime/generate/compare.h"
#include "runtime/generate/verify_call.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc {

namespace {

Error problem(const std::string& path, const std::string& message, std::string help = "") {
  return Error{"expected", path + ": " + message, {}, std::move(help)};
}

// Which rows of a padded [batch, seq] file count, sequence after sequence.
struct Rows {
  std::int64_t batch = 0, seq = 0;
  std::vector<std::int64_t> kept;                          // of batch · seq
  std::vector<std::int64_t> lengths;                       // of each sequence
};

class Verifier {
 public:
  Verifier(Model& model, const std::string& path, const VerifyOptions& options) : model_(model), path_(path), options_(options) {}

  Result<VerifyReport> run() {
    auto index = open_checkpoint(path_);
    if (!index) return std::move(index.error());
    index_ = std::make_shared<const CheckpointIndex>(std::move(*index));
    data_.emplace(index_);
    for (const EntryDesc& e : model_.entries())
      if (std::string(e.name) == "forward") entry_ = &e;
    if (!entry_) return problem(path_, std::string(model_.name()) + " has no entry forward");
    if (entry_->at == CallAt::none) return verify_call(model_, *entry_, path_, index_, options_);
    if (entry_->at == CallAt::sequences)
      return problem(path_, "verify calls entries that take a Batch or inputs alone, and forward takes Sequences: not carried out yet");
    if (auto s = rows(); !s) return std::move(s.error());
    if (auto s = read_inputs(); !s) return std::move(s.error());
    if (auto s = read_entries(); !s) return std::move(s.error());

    VerifyReport report;
    report.sequences = rows_.batch;
    report.rows = static_cast<std::int64_t>(rows_.kept.size());
    auto outputs = pass();
    if (!outputs) return std::move(outputs.error());
    if (auto s = compare_outputs(*outputs, report); !s) return std::move(s.error());
    if (auto s = compare_stages(report); !s) return std::move(s.error());
    if (report.differences.empty()) return problem(path_, "holds nothing to compare: no output (" + output_names() + ") and no stage");
    report.passed = std::all_of(report.differences.begin(), report.differences.end(), [](const auto& d) { return d.within; });
    return report;
  }

 private:
  std::string output_names() const {
    std::string s;
    for (const PortDesc& p : entry_->outputs) s += (s.empty() ? "" : ", ") + std::string(p.name);
    return s;
  }

  Status rows() {
    const TensorInfo* first = nullptr;
    for (const PortDesc& p : entry_->inputs)
      if (const TensorInfo* t = index_->find(p.name)) first = t;
    if (!first) {
      std::string names;
      for (const PortDesc& p : entry_->inputs) names += (names.empty() ? "" : ", ") + std::string(p.name);
      return problem(path_, "holds none of the inputs of forward (" + names + ")");
    }
    if (first->shape.empty() || first->shape.size() > 2)
      return problem(path_, first->name + " has shape " + shape_text(first->shape) + ", expected [batch, seq] or [seq]");
    rows_.batch = first->shape.size() == 2 ? first->shape[0] : 1;
    rows_.seq = first->shape.back();
    const TensorInfo* mask = index_->find("attention_mask");
    std::vector<std::int64_t> keep;
    if (mask) {
      if (mask->shape != first->shape)
        return problem(path_, "attention_mask has shape " + shape_text(mask->shape) + ", expected " + shape_text(first->shape));
      auto values = data_->read_i64(*mask);
      if (!values) return std::move(values.error());
      keep = std::move(*values);
    }
    for (std::int64_t b = 0; b < rows_.batch; ++b) {
      std::int64_t length = 0;
      for (std::int64_t i = 0; i < rows_.seq; ++i) {
        const std::int64_t row = b * rows_.seq + i;
        if (mask && keep[static_cast<std::size_t>(row)] == 0) continue;
        rows_.kept.push_back(row);
        ++length;
      }
      if (length == 0) return problem(path_, "sequence " + std::to_string(b) + " has no row that the attention_mask keeps");
      rows_.lengths.push_back(length);
    }
    if (const TensorInfo* positions = index_->find("position_ids")) {
      // Ours go from 0 in each sequence; the file must mean the same.
      auto values = data_->read_i64(*positions);
      if (!values) return std::move(values.error());
      if (positions->shape != first->shape)
        return problem(path_, "position_ids has shape " + shape_text(positions->shape) + ", expected " + shape_text(first->shape));
      std::size_t at = 0;
      for (std::int64_t length : rows_.lengths)
        for (std::int64_t i = 0; i < length; ++i, ++at)
          if ((*values)[static_cast<std::size_t>(rows_.kept[at])] != i)
            return problem(path_, "position_ids do not count from 0 over the kept rows of each sequence");
    }
    return {};
  }

  Status read_inputs() {
    for (const PortDesc& p : entry_->inputs) {
      const TensorInfo* t = index_->find(p.name);
      if (!t) {
        if (p.default_value) continue;
        return problem(path_, "holds no input " + std::string(p.name));
      }
      if (static_cast<std::int64_t>(t->shape.size()) < 1 || t->elements() != rows_.batch * rows_.seq)
        return problem(path_, t->name + " has shape " + shape_text(t->shape) + ", expected one value a token");
      auto values = data_->read_i64(*t);
      if (!values) return std::move(values.error());
      std::vector<std::int32_t> kept;
      for (std::int64_t row : rows_.kept) {
        const std::int64_t v = (*values)[static_cast<std::size_t>(row)];
        if (v < INT32_MIN || v > INT32_MAX) return problem(path_, t->name + " holds " + std::to_string(v) + ": out of range");
        kept.push_back(static_cast<std::int32_t>(v));
      }
      inputs_[p.name] = std::move(kept);
    }
    return {};
  }

  // Entries whose inputs the file holds, with these.
  Status read_entries() {
    for (const EntryDesc& e : model_.entries()) {
      if (&e == entry_ || e.at == CallAt::batch) continue;
      Before before{&e, {}};
      bool missing = false;
      for (const PortDesc& p : e.inputs) {
        const TensorInfo* t = index_->find(p.name);
        if (t == nullptr) {
          missing = missing || !p.default_value;
          continue;
        }
        auto in = read_port(*data_, *t, p, path_);
        if (!in) return std::move(in.error());
        before.inputs[p.name] = std::move(*in);
      }
      if (!missing && !before.inputs.empty()) before_.push_back(std::move(before));
    }
    return {};
  }

  Status run_entries(State& state, std::map<std::string, std::vector<float>>& results) {
    for (const Before& b : before_) {
      std::vector<int> slots;
      for (std::int64_t s = 0; s < rows_.batch; ++s) slots.push_back(static_cast<int>(s));
      auto at = Sequences::make(state, slots);
      if (!at) return std::move(at.error());
      auto out = b.entry->at == CallAt::sequences ? model_.call(b.entry->name, &state, *at, b.inputs)
                                                  : model_.call(b.entry->name, &state, b.inputs);
      if (!out) return std::move(out.error());
      for (const auto& [name, tensor] : *out) results[name] = numbers_of(tensor);
    }
    return {};
  }

  // All sequences through one state; gives every output of forward for every kept row, sequence after sequence, and what the entries
  // before it give.
  Result<std::map<std::string, std::vector<float>>> pass() {
    auto state = model_.new_state(
        {.sequences = static_cast<int>(rows_.batch), .capacity = *std::max_element(rows_.lengths.begin(), rows_.lengths.end())});
    if (!state) return std::move(state.error());
    std::map<std::string, std::vector<float>> result;
    before_forward_ = true;
    if (Status s = run_entries(**state, result); !s) return std::move(s.error());
    before_forward_ = false;
    std::vector<std::int64_t> done(rows_.lengths.size(), 0);
    std::vector<std::int64_t> start(rows_.lengths.size(), 0);
    for (std::size_t b = 1; b < start.size(); ++b) start[b] = start[b - 1] + rows_.lengths[b - 1];
    while (true) {
      std::vector<Segment> segments;
      for (std::size_t b = 0; b < done.size(); ++b) {
        const std::int64_t left = rows_.lengths[b] - done[b];
        if (left > 0) segments.push_back({static_cast<int>(b), options_.chunk > 0 ? std::min(left, options_.chunk) : left});
      }
      if (segments.empty()) return result;
      auto batch = Batch::make(**state, segments, Outputs::all);
      if (!batch) return std::move(batch.error());
      std::map<std::string, HostTensor> in;
      for (const auto& [name, values] : inputs_) {
        std::vector<std::int32_t> part;
        for (const Segment& s : segments) {
          const auto b = static_cast<std::size_t>(s.sequence);
          const auto from = values.begin() + start[b] + done[b];
          part.insert(part.end(), from, from + s.tokens);
        }
        in[name] = HostTensor::of(std::span<const std::int32_t>(part), {static_cast<std::int64_t>(part.size())});
      }
      auto out = model_.call("forward", state->get(), *batch, in);
      if (!out) return std::move(out.error());
      for (const auto& [name, tensor] : *out) place(result[name], tensor, segments, start, done);
      for (const Segment& s : segments) done[static_cast<std::size_t>(s.sequence)] += s.tokens;
    }
  }

  // Rows of one call into their places among all kept rows.
  void place(std::vector<float>& to, const HostTensor& tensor, const std::vector<Segment>& segments, const std::vector<std::int64_t>& start,
             const std::vector<std::int64_t>& done) const {
    const auto values = tensor.as<float>();
    std::int64_t rows = 0;
    for (const Segment& s : segments) rows += s.tokens;
    const auto width = static_cast<std::size_t>(rows > 0 ? static_cast<std::int64_t>(values.size()) / rows : 0);
    to.resize(rows_.kept.size() * width);
    std::size_t at = 0;
    for (const Segment& s : segments) {
      const auto b = static_cast<std::size_t>(s.sequence);
      const auto count = static_cast<std::size_t>(s.tokens) * width;
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(at), count,
                  to.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(start[b] + done[b]) * width));
      at += count;
    }
  }

  // The kept rows of an expected tensor [batch, seq, …].
  Result<std::vector<float>> expected_rows(const TensorInfo& t) {
    if (t.elements() % std::max<std::int64_t>(1, rows_.batch * rows_.seq) != 0 || t.shape.size() < 2)
      return problem(path_, t.name + " has shape " + shape_text(t.shape) + ", expected [batch, seq, …] with " +
                                std::to_string(rows_.batch) + " and " + std::to_string(rows_.seq));
    auto all = data_->read_f32(t);
    if (!all) return std::move(all.error());
    const auto width = static_cast<std::size_t>(t.elements() / (rows_.batch * rows_.seq));
    std::vector<float> kept;
    kept.reserve(rows_.kept.size() * width);
    for (std::int64_t row : rows_.kept) {
      const auto from = all->begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * width);
      kept.insert(kept.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
    return kept;
  }

  void judge(Difference& d) const {
    d.within = d.max_abs <= options_.within;
    const auto& o = options_;
    if (d.output && d.max_kl && (o.within_kl || o.within_kl_99 || o.within_mean_kl))
      d.within = (!o.within_kl || *d.max_kl <= *o.within_kl) && (!o.within_kl_99 || *d.kl_99 <= *o.within_kl_99) &&
                 (!o.within_mean_kl || *d.mean_kl <= *o.within_mean_kl);
  }

  Status compare_outputs(const std::map<std::string, std::vector<float>>& outputs, VerifyReport& report) {
    for (const Before& b : before_)
      for (const PortDesc& p : b.entry->outputs) {
        const TensorInfo* t = index_->find(p.name);
        if (!t) continue;
        auto expected = numbers_of(*data_, *t);
        if (!expected) return std::move(expected.error());
        if (Status s = compare_output(p, *t, *expected, outputs.at(p.name), report); !s) return s;
      }
    for (const PortDesc& p : entry_->outputs) {
      const TensorInfo* t = index_->find(p.name);
      if (!t) continue;
      auto expected = expected_rows(*t);
      if (!expected) return std::move(expected.error());
      if (Status s = compare_output(p, *t, *expected, outputs.at(p.name), report); !s) return s;
    }
    return {};
  }
  Status compare_output(const PortDesc& p, const TensorInfo& t, const std::vector<float>& expected, const std::vector<float>& found,
                        VerifyReport& report) {
    used_.push_back(p.name);
    if (expected.size() != found.size())
      return problem(path_, std::string(p.name) + " has shape " + shape_text(t.shape) + ", but the model gives " + std::string(p.shape));
    Difference d = compare(p.name, expected, found);
    d.output = true;
    const EntryDesc* language = model_.language_entry();
    if (language != nullptr && &p == language->outputs.data()) compare_logits(d, expected, found, *model_.vocabulary());
    judge(d);
    report.differences.push_back(std::move(d));
    return {};
  }

  Status compare_stages(VerifyReport& report) {
    std::map<std::string, const TensorInfo*, std::less<>> wanted;
    for (const TensorInfo& t : index_->tensors())
      if (!is_input(t.name) && std::find(used_.begin(), used_.end(), t.name) == used_.end()) wanted.emplace(t.name, &t);
    if (wanted.empty()) return {};
    std::vector<std::string> seen, order;
    struct Stage {
      std::vector<float> values;
      bool whole = false;                                  // of an entry before forward: not by token
    };
    std::map<std::string, Stage, std::less<>> found;
    const int hook = model_.add_layer_hook([&](const LayerValue& v) {
      const auto it = wanted.find(v.name);
      if (it == wanted.end()) {
        if (seen.size() < 100000) seen.emplace_back(v.name);
        return;
      }
      auto& to = found[it->first];
      if (to.values.empty()) order.push_back(it->first);
      to = {{v.data.begin(), v.data.end()}, before_forward_}; // of a value seen twice the last one stands, as a PyTorch hook's does
    });
    const std::int64_t chunk = options_.chunk;
    options_.chunk = 0; // stages are compared over whole sequences
    auto out = pass();
    options_.chunk = chunk;
    model_.remove_layer_hook(hook);
    if (!out) return std::move(out.error());
    for (const auto& [name, t] : wanted) {
      if (found.count(name) > 0) continue;
      const auto near = nearest(name, std::span<const std::string>(seen));
      return problem(path_, "stage " + quote(name) + " is no value of the model", near ? "did you mean " + *near + "?" : "");
    }
    for (const std::string& name : order) {
      const Stage& stage = found.at(name);
      auto expected = stage.whole ? numbers_of(*data_, *wanted.at(name)) : expected_rows(*wanted.at(name));
      if (!expected) return std::move(expected.error());
      Difference d = compare(name, *expected, stage.values);
      judge(d);
      if (!d.within && !report.first_stage) report.first_stage = name;
      report.differences.push_back(std::move(d));
    }
    return {};
  }

  bool is_input(const std::string& name) const {
    return name == "attention_mask" || name == "position_ids" || inputs_.count(name) > 0 ||
           std::any_of(before_.begin(), before_.end(), [&](const Before& b) { return b.inputs.count(name) > 0; });
  }

  // An entry that runs before forward.
  struct Before {
    const EntryDesc* entry;
    std::map<std::string, HostTensor> inputs;
  };

  Model& model_;
  std::string path_;
  VerifyOptions options_;
  std::shared_ptr<const CheckpointIndex> index_;
  std::optional<CheckpointData> data_;
  const EntryDesc* entry_ = nullptr;
  Rows rows_;
  std::map<std::string, std::vector<std::int32_t>> inputs_;
  std::vector<Before> before_;
  bool before_forward_ = false; // these run now
  std::vector<std::string> used_;
};

} // namespace

Result<VerifyReport> verify(Model& model, const std::string& expected_path, const VerifyOptions& options) {
  return Verifier(model, expected_path, options).run();
}

} // namespace modelc
