// Last pass: every value gets a buffer and every frame buffer an offset; the draft becomes the plan's function.
//
// A buffer lives from the step that writes it to the last that reads it (to the end of a loop, when it comes from outside
// and is read inside). Buffers whose lives do not meet share a slot; a kernel that may work in place writes over an input
// that nobody reads afterwards. Sizes are polynomials in the run-time axes, so slots grow term by term.
#include <algorithm>
#include <climits>
#include <map>
#include <set>

#include "codegen/lower/build_steps.h"
#include "codegen/lower/draft.h"
#include "codegen/lower/sizes.h"

namespace modelc::lower {

namespace {

using plan::BufferId;
using S = DraftValue::Source;

class Planner {
 public:
  explicit Planner(Draft& d) : d_(d), placed_(d.values.size()), defined_(d.values.size(), -1), last_(d.values.size(), -1) {}

  Placement run() {
    number(d_.nodes, d_.outputs);
    for (ValueIndex v : d_.inputs) place(v, add(v, plan::BufferKind::input, 0, INT_MAX));
    for (ValueIndex v : d_.outputs) place(d_.root(v), add(d_.root(v), plan::BufferKind::output, defined_[d_.root(v)], INT_MAX));
    int index = 0;
    assign(d_.nodes, index);
    Placement p;
    p.frame_bytes = slots();
    p.buffers = std::move(buffers_);
    p.buffer_of = std::move(placed_);
    p.carried = std::move(carried_);
    return p;
  }

 private:
  // Positions in order of execution; what has a body takes one at its beginning and one at its end.
  void number(const std::vector<Node>& nodes, const std::vector<ValueIndex>& outputs) {
    walk(nodes);
    for (ValueIndex v : outputs) last_[d_.root(v)] = INT_MAX;
  }
  void walk(const std::vector<Node>& nodes) {
    for (const Node& n : nodes) {
      const int at = clock_++;
      if (n.kind == NodeKind::custom) {
        // A shader reads all that its reference reads, and writes all that it writes, at once.
        walk(n.body);
        const int end = clock_++;
        for (const auto& v : n.in) read(d_.root(*v), end);
        for (ValueIndex v : n.results) read(d_.root(v), end);
        for (ValueIndex v : n.out) defined_[v] = at, read(v, end);
        continue;
      }
      if (n.kind != NodeKind::repeat) {
        for_each_read(n, d_, [&](ValueIndex v) { read(v, at); });
        for (ValueIndex v : n.out) defined_[v] = at;
        continue;
      }
      for (const auto& v : n.in) read(d_.root(*v), at);
      for (ValueIndex v : n.arguments) defined_[v] = at;
      walk(n.body);
      const int end = clock_++;
      for (ValueIndex v : n.results) read(d_.root(v), end);
      // What came from outside is needed in every pass.
      for (ValueIndex v = 0; v < d_.values.size(); ++v)
        if (last_[v] > at && last_[v] < end && defined_[v] < at) last_[v] = end;
      for (ValueIndex v : n.out) defined_[v] = end;
    }
  }
  void read(ValueIndex v, int at) { last_[v] = std::max(last_[v], at); }

  std::uint32_t add(ValueIndex v, plan::BufferKind kind, int first, int last) {
    plan::Buffer b;
    b.kind = kind;
    b.type = d_.values[v].type;
    if (b.type.dtype == DType::boolean && kind != plan::BufferKind::input) b.type.dtype = DType::f32;
    b.bytes = padded_bytes(*d_.dims, b.type.shape);
    b.first = first;
    b.last = last;
    b.name = unique_name(v, kind);
    buffers_.push_back(std::move(b));
    return static_cast<std::uint32_t>(buffers_.size() - 1);
  }
  void place(ValueIndex v, std::uint32_t buffer) { placed_[v] = BufferId{buffer}; }

  // The user's name of a value or of a view of it; else the module that made it; else a number.
  std::string unique_name(ValueIndex root, plan::BufferKind kind) {
    std::string base = kind == plan::BufferKind::output ? "result" : "";
    for (ValueIndex v = 0; v < d_.values.size() && base.empty(); ++v)
      if (d_.root(v) == root && !d_.values[v].name.empty()) base = d_.values[v].name;
    for (ValueIndex v = 0; v < d_.values.size() && base.empty(); ++v)
      if (d_.root(v) == root && !d_.values[v].stage.empty()) base = d_.values[v].stage;
    if (base.empty()) base = d_.values[root].hint.empty() ? "value" : d_.values[root].hint;
    std::replace(base.begin(), base.end(), '.', '_');
    std::string name = base;
    for (int i = 2; !names_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
    return name;
  }

  void assign(const std::vector<Node>& nodes, int& index) {
    for (const Node& n : nodes) {
      const int at = index++;
      if (n.kind == NodeKind::repeat) {
        loop(n, at, index);
        continue;
      }
      if (n.kind == NodeKind::custom) {
        for (std::size_t k = 0; k < n.out.size(); ++k) {
          const ValueIndex v = n.out[k];
          if (!placed_[v]) place(v, add(v, plan::BufferKind::frame, at, last_of(v, at)));
          place(d_.root(n.results[k]), placed_[v]->index);
        }
        assign(n.body, index);
        ++index;
        continue;
      }
      for (std::size_t k = 0; k < n.out.size(); ++k) {
        const ValueIndex v = n.out[k];
        if (placed_[v]) continue;
        const auto over = in_place(n, k, at);
        if (over) {
          place(v, *over);
          buffers_[*over].last = last_of(v, at);
          rename(*over, v);
        } else {
          place(v, add(v, plan::BufferKind::frame, at, last_of(v, at)));
        }
      }
    }
  }
  int last_of(ValueIndex v, int at) const { return std::max(last_[v], at); }

  // A buffer that held an unnamed value takes the name of the one that replaces it.
  void rename(std::uint32_t buffer, ValueIndex v) {
    for (ValueIndex w = 0; w < d_.values.size(); ++w) {
      if (d_.root(w) != v || d_.values[w].name.empty() || buffers_[buffer].name == d_.values[w].name) continue;
      if (names_.count(d_.values[w].name) > 0) return;
      names_.erase(buffers_[buffer].name);
      names_.insert(d_.values[w].name);
      buffers_[buffer].name = d_.values[w].name;
      buffers_[buffer].type.shape = d_.values[w].type.shape;
      return;
    }
  }

  void loop(const Node& n, int at, int& index) {
    std::vector<plan::Carried> carried;
    for (std::size_t i = 0; i < n.in.size(); ++i) {
      const std::uint32_t current = placed_[d_.root(*n.in[i])]->index;
      const std::uint32_t next = add(n.arguments[i], plan::BufferKind::frame, at, last_[n.out[i]]);
      fixed_.insert(current);
      fixed_.insert(next);
      place(n.arguments[i], current);
      place(d_.root(n.results[i]), next);
      place(n.out[i], current);
      const std::string name = d_.values[n.arguments[i]].name;
      if (!name.empty() && buffers_[current].name != name && names_.insert(name).second) {
        names_.erase(buffers_[current].name);
        buffers_[current].name = name;
      }
      names_.erase(buffers_[next].name);
      std::string next_name = buffers_[current].name + "_next";
      while (!names_.insert(next_name).second) next_name += "_";
      buffers_[next].name = next_name;
      carried.push_back({BufferId{current}, BufferId{next}, d_.values[n.arguments[i]].type.dtype == DType::f32 ? n.rounded : DType::f32});
    }
    assign(n.body, index);
    const int end = index++;
    for (std::size_t i = 0; i < carried.size(); ++i) {
      // They change places in every pass, so both live as long as either.
      const int last = std::max(end, last_[n.out[i]]);
      buffers_[carried[i].current.index].last = last;
      buffers_[carried[i].next.index].last = last;
    }
    carried_[&n] = std::move(carried);
  }

  // Output k of the node may stand where one of its inputs stood.
  std::optional<std::uint32_t> in_place(const Node& n, std::size_t k, int at) {
    std::size_t inputs = 0;
    switch (n.kind) {
      case NodeKind::rope:
      case NodeKind::rms_norm:
      case NodeKind::layer_norm: inputs = 1; break;
      case NodeKind::add_rms_norm: inputs = k == 0 ? 2 : 0; break;
      case NodeKind::map: inputs = n.in.size(); break;
      default: return std::nullopt;
    }
    for (std::size_t i = 0; i < inputs && i < n.in.size(); ++i) {
      if (!n.in[i]) continue;
      const ValueIndex r = d_.root(*n.in[i]);
      if (!placed_[r] || d_.values[r].source != S::node || d_.rows(*n.in[i])) continue;
      const std::uint32_t b = placed_[r]->index;
      if (buffers_[b].kind != plan::BufferKind::frame || fixed_.count(b) > 0 || buffers_[b].last != at) continue;
      if ((buffers_[b].type.dtype == DType::i32) != (d_.values[n.out[k]].type.dtype == DType::i32)) continue;
      // Element by element the same place: the same shape, not only the same size.
      if (n.kind == NodeKind::map && d_.values[*n.in[i]].type.shape != d_.values[n.out[k]].type.shape) continue;
      if (padded_bytes(*d_.dims, d_.values[n.out[k]].type.shape) != buffers_[b].bytes) continue;
      return b;
    }
    return std::nullopt;
  }

  // First fit over slots in order of first use; gives every frame buffer its offset, and the frame's size.
  graph::DimId slots() {
    struct Slot {
      graph::DimId bytes;
      int last = -1;
      std::vector<std::uint32_t> buffers;
    };
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < buffers_.size(); ++i)
      if (buffers_[i].kind == plan::BufferKind::frame) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return buffers_[a].first < buffers_[b].first; });
    std::vector<Slot> slots;
    for (std::uint32_t i : order) {
      Slot* best = nullptr;
      for (Slot& s : slots) {
        if (s.last >= buffers_[i].first) continue;
        if (!best || (s.bytes == buffers_[i].bytes && best->bytes != buffers_[i].bytes)) best = &s;
      }
      if (!best) {
        slots.push_back({});
        best = &slots.back();
        best->bytes = buffers_[i].bytes;
      }
      best->bytes = upper_of(*d_.dims, best->bytes, buffers_[i].bytes);
      best->last = buffers_[i].last;
      best->buffers.push_back(i);
    }
    graph::DimId offset = d_.dims->constant(0);
    for (const Slot& s : slots) {
      for (std::uint32_t i : s.buffers) buffers_[i].offset = offset;
      offset = d_.dims->add(offset, s.bytes);
    }
    return offset;
  }

  Draft& d_;
  std::vector<std::optional<BufferId>> placed_;
  std::vector<int> defined_, last_;
  std::vector<plan::Buffer> buffers_;
  std::set<std::string> names_;
  std::set<std::uint32_t> fixed_;                // buffers of loops: never written over
  std::map<const Node*, std::vector<plan::Carried>> carried_;
  int clock_ = 0;
};

}  // namespace

plan::Function plan_memory(Draft& d, plan::Class& cls, plan::Program& program) {
  round_in_kernels(d);
  alias_slices(d);
  settle(d);
  const Placement placement = Planner(d).run();
  return build_steps(d, placement, cls, program);
}

}  // namespace modelc::lower
