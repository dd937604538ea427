// Calls of a loaded model: arguments are checked, the step is set up, the state moves on.
#include "runtime/device/model.h"

#include <algorithm>
#include <cassert>

#include "runtime/base/strings.h"
#include "runtime/device/call_checks.h"
#include "runtime/device/model_impl.h"
#include "runtime/kv_cache/kv_cache.h"

namespace modelc {
namespace {

// Of a state: each is counted in every store, whether it is used or not.
constexpr std::int64_t most_sequences = 1 << 16;

// `count` elements of the same value, as bytes.
std::vector<std::byte> filled(DType dtype, std::int64_t count, double value) {
  std::vector<std::byte> out;
  const auto put = [&](auto element) {
    const auto one = std::as_bytes(std::span(&element, 1));
    for (std::int64_t i = 0; i < count; ++i) out.insert(out.end(), one.begin(), one.end());
  };
  if (dtype == DType::f32) put(static_cast<float>(value));
  else if (dtype == DType::i32) put(static_cast<std::int32_t>(value));
  else put(static_cast<std::uint8_t>(value != 0));
  return out;
}

// What reaches the devices before and after a step: several that act as one throw where one of them fails.
template <class F> Status attempt(F&& f) {
  try {
    return f();
  } catch (StepFailure& failure) { return std::move(failure.error); } catch (const std::bad_alloc&) {
    return Error{"out-of-memory", "no memory is left for what a call begins with", {}, "split the prompt into smaller calls"};
  }
}

// Into memory of the host, where they are not in it.
Status read_outputs(Residence& here, std::vector<HostView>& results) {
  here.read_back.resize(here.outputs.size());
  for (std::size_t i = 0; i < here.outputs.size(); ++i) {
    const Tensor& t = here.outputs[i];
    const auto size = static_cast<std::size_t>(t.size());
    const std::byte* data = t.host<std::byte>();
    if (data == nullptr) {
      here.read_back[i].resize(size);
      if (Status s = here.device->read(t, here.read_back[i]); !s) return s;
      data = here.read_back[i].data();
    }
    results.push_back({t.dtype, t.shape, {data, size}, true});
  }
  return {};
}

}  // namespace

Model::Model() = default;
Model::~Model() {
  if (!impl_) return;
  const auto lock = impl_->lock;
  const std::lock_guard guard(*lock);
  impl_.reset();
}
Mode Model::mode() const {
  assert(impl_ && "a model is used before it is loaded");
  return impl_->here->mode;
}

HostView HostView::of(std::span<const float> values, Shape shape) { return {DType::f32, shape, std::as_bytes(values), true}; }
HostView HostView::of(std::span<const std::int32_t> values, Shape shape) { return {DType::i32, shape, std::as_bytes(values), true}; }

Result<std::unique_ptr<State>> Model::new_state(const StateOptions& options) const {
  assert(impl_ && "a model is used before it is loaded");
  if (options.sequences < 1)
    return Error{"state", "a state of " + std::to_string(options.sequences) + " sequences", {}, "it needs at least 1"};
  if (options.sequences > most_sequences)
    return Error{"state",
                 "a state of " + grouped(std::int64_t{options.sequences}) + " sequences, and one has at most " + grouped(most_sequences),
                 {},
                 "make several states"};
  std::int64_t capacity = options.capacity;
  if (capacity < 0) return Error{"state", "a capacity of " + grouped(capacity) + " positions", {}, "0 takes the model's context"};
  if (context() > 0 && capacity > context())
    return Error{"context",
                 "a capacity of " + grouped(capacity) + " positions passes the model's context of " + grouped(context()),
                 {},
                 "positions beyond it mean nothing to the model"};
  if (capacity == 0) capacity = context();
  if (capacity == 0)
    return Error{"state",
                 std::string(name()) + " declares no context, so that the state's capacity must be given",
                 {},
                 "set StateOptions::capacity"};
  const std::lock_guard guard(*impl_->lock);
  std::unique_ptr<State> state(new State);
  state->device_ = device_;
  state->lock_ = impl_->lock;
  state->moves_ = impl_->moves;
  state->model_ = this;
  state->capacity_ = capacity;
  state->lengths_.assign(static_cast<std::size_t>(options.sequences), 0);
  for (const ModuleTree::NamedState& s : impl_->states) {
    StateSlot slot = *s.slot;
    if (impl_->here->mode == Mode::fast && slot.narrows()) slot.dtype = slot.kept;
    auto store = impl_->here->device->reserve(slot, capacity, options.sequences);
    if (!store) {
      store.error().notes.push_back("for " + s.name + ": " + grouped(capacity) + " positions, " +
                                    counted(static_cast<std::uint64_t>(options.sequences), "sequence"));
      if (store.error().kind == "out-of-memory") store.error().help = "ask for a smaller StateOptions::capacity or fewer sequences";
      return std::move(store.error());
    }
    state->stores_.push_back(std::move(*store));
    state->names_.push_back(s.name);
  }
  return state;
}

Result<std::vector<HostView>> Model::enter(int index, State* state, StepAt at, std::span<const HostView> inputs) {
  assert(impl_ && "a model is used before it is loaded");
  assert(index >= 0 && static_cast<std::size_t>(index) < impl_->entries.size());
  const std::lock_guard guard(*impl_->lock);
  Residence& here = *impl_->here;
  const Entry& entry = impl_->entries[static_cast<std::size_t>(index)];
  const std::string where = std::string(name()) + "." + entry.desc->name;

  // The call under way owns the arena and the inputs.
  if (impl_->running)
    return Error{"re-entry",
                 where + " is called by a hook of a call of the same model",
                 {},
                 "keep what the hook sees, and call when the first call has returned; or load the model a second time"};
  if (state != nullptr && state->model_ != this)
    return call_error(where, "state", "the state is another model's", "make it with new_state of this one");
  if (state != nullptr && state->moves_ != impl_->moves)
    return call_error(where, "state", "the state was made before the model's modules went to other devices",
                      "make a new one with new_state");
  if (state == nullptr && !impl_->states.empty() && entry.desc->at != CallAt::none)
    return call_error(where, "state", "the model keeps a state, and none was given", "make one with new_state");
  if (entry.desc->at == CallAt::none) at = {};
  if (entry.desc->at == CallAt::sequences) at = StepAt(at.sequences);
  if (entry.desc->at == CallAt::batch && at.batch == nullptr)
    return call_error(where, "batch", "it takes a Batch, and none was given", "make one with Batch::make");
  if (entry.desc->at == CallAt::sequences && at.sequences == nullptr)
    return call_error(where, "batch", "it takes Sequences, and none were given", "make them with Sequences::make");
  if (at.batch != nullptr) {
    if (Status s = check_batch(*at.batch, where, state, context()); !s) return std::move(s.error());
  } else if (at.sequences != nullptr) {
    if (Status s = check_sequences(*at.sequences, where, state); !s) return std::move(s.error());
  }
  PortChecker ports(where, axes(), at);
  assert(inputs.size() == entry.inputs.size());
  if (Status s = ports.bind(entry.inputs, inputs); !s) return std::move(s.error());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (Status s = ports.check(entry.inputs[i], inputs[i]); !s) return std::move(s.error());
  if (Status s = ports.check_bound(entry); !s) return std::move(s.error());

  // What the call is about when it ends: the sequences of a state, moved on or brought back.
  const Sequences* touched = state != nullptr ? at.sequences : nullptr;
  const Batch* advances = entry.desc->advances ? at.batch : nullptr;
  const StepSizes& sizes = ports.sizes();
  const std::int64_t needed = std::max<std::int64_t>(arena_bytes(sizes), 64);
  if (here.arena == nullptr || here.arena->size < needed) {
    if (here.arena != nullptr) here.device->free(here.arena);
    here.arena = nullptr;
    auto arena = here.device->allocate(needed);
    if (!arena) {
      arena.error().help = "a call of fewer tokens needs less: split the prompt";
      return std::move(arena.error());
    }
    here.arena = *arena;
  }
  here.inputs.clear();
  here.outputs.clear();
  const Status prepared = attempt([&]() -> Status {
    std::size_t slot = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Port& port = entry.inputs[i];
      auto t = here.ports.get(slot++, port.desc->dtype, ports.shape_of(port));
      if (!t) return std::move(t.error());
      if (inputs[i].given) here.device->write(inputs[i].data, *t);
      else here.device->write(filled(t->dtype, t->count(), *port.desc->default_value), *t);
      here.inputs.push_back(*t);
    }
    for (const Port& port : entry.outputs) {
      auto t = here.ports.get(slot++, port.desc->dtype, ports.shape_of(port));
      if (!t) return std::move(t.error());
      here.outputs.push_back(*t);
    }
    return touched != nullptr ? state->begin(*touched) : Status();
  });
  // Of a call that ends early what was enqueued is done with, and what a device has kept of it is said here and not by the next call.
  const auto settle = [&] { return attempt([&] { return here.device->finish(); }); };
  if (!prepared) {
    static_cast<void>(settle());
    return prepared.error();
  }
  const auto put_back = [&] {
    return attempt([&]() -> Status {
      if (touched != nullptr) state->rollback(*touched);
      return here.device->finish();
    });
  };
  Status done;
  struct Running {
    bool& flag;
    explicit Running(bool& f) : flag(f) { flag = true; }
    ~Running() { flag = false; }
  } const guard_of_run(impl_->running);
  std::vector<HostView> results;
  try {
    {
      std::vector<LayerHook> hooks;
      for (const auto& h : impl_->hooks) hooks.push_back(h.second);
      Step step(here.memory, {here.arena, 0, DType::u8, {here.arena->size}}, sizes, at, state, &hooks, here.mode == Mode::fast);
      run(index, step, here.inputs, here.outputs);
    }
    done = here.device->finish();
    if (done) done = read_outputs(here, results);
  } catch (StepFailure& f) { done = std::move(f.error); } catch (const std::bad_alloc&) {
    done = Error{"out-of-memory",
                 where + ": no memory is left for a call of " + counted(static_cast<std::uint64_t>(sizes.tokens()), "token"),
                 {},
                 "split the prompt into smaller calls"};
  } catch (...) {                                          // a hook's own
    static_cast<void>(settle());
    static_cast<void>(put_back());
    throw;
  }
  // Weights are read where their files are mapped.
  for (const auto& file : here.files)
    if (Status s = file->intact(); done && !s) done = std::move(s);
  if (done) {
    if (touched != nullptr) state->commit(*touched, advances);
    return results;
  }
  static_cast<void>(settle());
  if (Status s = put_back(); !s && touched != nullptr)
    done.error().notes.push_back("and the state is not what it was: " + s.error().message);
  return std::move(done.error());
}

Result<std::map<std::string, HostTensor>> Model::call(const std::string& entry, State* state, const Batch& at,
                                                      const std::map<std::string, HostTensor>& inputs) {
  return call_at(entry, state, &at, inputs);
}
Result<std::map<std::string, HostTensor>> Model::call(const std::string& entry, State* state, const Sequences& at,
                                                      const std::map<std::string, HostTensor>& inputs) {
  return call_at(entry, state, StepAt(&at), inputs);
}
Result<std::map<std::string, HostTensor>> Model::call(const std::string& entry, State* state,
                                                      const std::map<std::string, HostTensor>& inputs) {
  return call_at(entry, state, {}, inputs);
}

Result<std::map<std::string, HostTensor>> Model::call_at(const std::string& entry, State* state, StepAt at,
                                                         const std::map<std::string, HostTensor>& inputs) {
  assert(impl_ && "a model is used before it is loaded");
  std::vector<std::string> known;
  int index = -1;
  for (std::size_t i = 0; i < impl_->entries.size(); ++i) {
    known.emplace_back(impl_->entries[i].desc->name);
    if (entry == known.back()) index = static_cast<int>(i);
  }
  const auto suggestion = [](const std::string& word, const std::vector<std::string>& names) {
    const auto near = nearest(word, names);
    return near ? "did you mean " + *near + "?" : "there are " + listed(names);
  };
  if (index < 0) return Error{"argument-name", std::string(name()) + " has no entry " + quote(entry), {}, suggestion(entry, known)};
  const Entry& e = impl_->entries[static_cast<std::size_t>(index)];
  const std::string where = std::string(name()) + "." + entry;

  std::vector<std::string> names;
  for (const Port& p : e.inputs) names.emplace_back(p.desc->name);
  for (const auto& given : inputs)
    if (std::find(names.begin(), names.end(), given.first) == names.end())
      return call_error(where, "argument-name", "no input is called " + quote(given.first), suggestion(given.first, names));
  std::vector<HostView> views;
  for (const Port& p : e.inputs) {
    const auto given = inputs.find(p.desc->name);
    if (given != inputs.end()) {
      views.push_back(HostView::of(given->second));
      continue;
    }
    HostView left_out;
    left_out.given = false;
    views.push_back(left_out);
    if (p.desc->default_value) continue;
    return call_error(where, "argument-name", "the input " + std::string(p.desc->name) + " is missing",
                      "it is " + std::string(modelc::name(p.desc->dtype)) + p.desc->shape);
  }

  const std::lock_guard guard(*impl_->lock);
  auto results = enter(index, state, at, views);
  if (!results) return std::move(results.error());
  std::map<std::string, HostTensor> out;
  for (std::size_t i = 0; i < results->size(); ++i) {
    const HostView& v = (*results)[i];
    out.emplace(e.outputs[i].desc->name, HostTensor{v.dtype, v.shape, {v.data.begin(), v.data.end()}});
  }
  return out;
}

namespace {

// Of the entry forward, where it is tokens → logits.
std::optional<std::size_t> language_index(const std::vector<Entry>& entries) {
  const auto at = std::find_if(entries.begin(), entries.end(), [](const Entry& e) { return std::string_view(e.desc->name) == "forward"; });
  if (at == entries.end() || at->desc->at != CallAt::batch || at->inputs.size() != 1 || at->outputs.size() != 1) return std::nullopt;
  const Port &in = at->inputs[0], &out = at->outputs[0];
  if (in.desc->dtype != DType::i32 || in.desc->index_bound <= 0 || in.dims.size() != 1 || in.dims[0].axis() != tokens_axis ||
      out.desc->dtype != DType::f32 || out.dims.size() != 2 || out.dims[0].axis() != outputs_axis)
    return std::nullopt;
  return static_cast<std::size_t>(at - entries.begin());
}

}  // namespace

const EntryDesc* Model::language_entry() const {
  assert(impl_ && "a model is used before it is loaded");
  const auto index = language_index(impl_->entries);
  return index ? impl_->entries[*index].desc : nullptr;
}

std::optional<std::int64_t> Model::vocabulary() const {
  assert(impl_ && "a model is used before it is loaded");
  const auto index = language_index(impl_->entries);
  return index ? impl_->entries[*index].outputs[0].dims[1].number() : std::nullopt;
}

Result<std::span<const float>> Model::logits(State& state, const Batch& at, std::span<const std::int32_t> input_ids) {
  assert(impl_ && "a model is used before it is loaded");
  const auto index = language_index(impl_->entries);
  if (!index)
    return Error{
        "entry", std::string(name()) + " does not take tokens alone and give logits [outputs, vocabulary]", {}, "call its entries by name"};
  const HostView in = HostView::of(input_ids, {static_cast<std::int64_t>(input_ids.size())});
  auto results = enter(static_cast<int>(*index), &state, &at, {&in, 1});
  if (!results) return std::move(results.error());
  return (*results)[0].f32();
}

int Model::add_layer_hook(LayerHook hook) {
  assert(impl_ && "a model is used before it is loaded");
  const std::lock_guard guard(*impl_->lock);
  impl_->hooks.emplace_back(++impl_->hook_number, std::move(hook));
  return impl_->hook_number;
}
void Model::remove_layer_hook(int number) {
  assert(impl_ && "a model is used before it is loaded");
  const std::lock_guard guard(*impl_->lock);
  std::erase_if(impl_->hooks, [&](const auto& h) { return h.first == number; });
}
void Model::clear_hooks() {
  assert(impl_ && "a model is used before it is loaded");
  const std::lock_guard guard(*impl_->lock);
  impl_->hooks.clear();
}

}  // namespace modelc
