// A device itself: memory, limits, failures. Where no driver is, these say SKIPPED. What its kernels compute is tested
// with the CPU's, in tests/runtime/cpu.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/device_set.h"
#include "runtime/device/step.h"
#include "runtime/kv_cache/kv_cache.h"

using namespace modelc;

namespace {

// None where there is no driver.
std::unique_ptr<Device> open(const VulkanOptions& options = {}) {
  auto d = open_vulkan(options);
  if (d) return std::move(*d);
  CHECK(d.error().kind == "no-vulkan");
  std::printf("SKIPPED: %s\n", d.error().message.c_str());
  return nullptr;
}

Tensor tensor(Device& d, Shape shape, std::span<const float> values = {}) {
  auto b = d.allocate(shape.count() * 4);
  REQUIRE(b.ok());
  const Tensor t{*b, 0, DType::f32, shape};
  if (!values.empty()) d.write(std::as_bytes(values), t);
  return t;
}

std::vector<float> read(Device& d, const Tensor& t) {
  std::vector<float> v(static_cast<std::size_t>(t.count()));
  const Status s = d.read(t, std::as_writable_bytes(std::span(v)));
  if (!s) FAIL_CHECK(s.error().text());
  return v;
}

std::vector<float> ramp(std::int64_t n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), 1.0F);
  return v;
}

// What was asked of a device with bindings of 64 kB needs one of so many bytes: said with both numbers and a way out.
void check_refused(Device& d, const char* bytes) {
  const Status s = d.finish();
  REQUIRE(!s);
  CHECK(s.error().kind == "tensor-size");
  CAPTURE(s.error().message);
  CHECK(s.error().message.find(bytes) != std::string::npos);
  CHECK(s.error().message.find("65,536") != std::string::npos);
  CHECK(!s.error().help.empty());
}

}  // namespace

TEST_CASE("names of devices: the first, one by number, and what is none") {
  const auto wrong = open_device("tpu", {});
  REQUIRE(!wrong.ok());
  CHECK(wrong.error().kind == "device-name");
  for (const char* name : {"vulkan:", "vulkan:x", "vulkan:-1", "vulkan1"}) {
    const auto d = open_device(name, {});
    REQUIRE(!d.ok());
    CHECK(d.error().kind == "device-name");
  }
  CHECK(open_device("cpu", {}).ok());
  if (!open()) return;
  const auto far = open_device("vulkan:1000", {});
  REQUIRE(!far.ok());
  CHECK(far.error().kind == "device-name");
  CHECK(!far.error().notes.empty());                       // those that there are
  CHECK(open_device("vulkan", {}).ok());
  CHECK(open_device("vulkan:0", {}).ok());
}

TEST_CASE("what is written is read back, in any pieces, larger than a slice of the staging ring too") {
  const auto d = open();
  if (!d) return;
  const std::int64_t n = 10 * 1000 * 1000 + 3;
  const auto values = ramp(n);
  const Tensor t = tensor(*d, {n}, values);
  CHECK(read(*d, t) == values);
  Tensor part = t;
  part.offset = 4 * 1234567;
  part.shape = {5};
  d->write(std::as_bytes(std::span(values).first(5)), part);
  CHECK(read(*d, part) == std::vector<float>{1, 2, 3, 4, 5});
  part.offset -= 4;
  CHECK(read(*d, part)[0] == values[1234566]);
  d->free(t.buffer);
}

TEST_CASE("memory that is given back is used again, and what is still needed is not") {
  const auto d = open();
  if (!d) return;
  const std::int64_t n = 1000;
  const Tensor keep = tensor(*d, {n}, ramp(n));
  for (int round = 0; round < 300; ++round) {
    // Freed while what uses it has not run yet.
    const Tensor a = tensor(*d, {n}, std::vector<float>(n, static_cast<float>(round))), b = tensor(*d, {n});
    d->copy(a, b);
    d->free(a.buffer);
    const Tensor c = tensor(*d, {n}, std::vector<float>(n, -1.0F));
    if (round % 50 == 0) CHECK(read(*d, b) == std::vector<float>(n, static_cast<float>(round)));
    d->free(b.buffer);
    d->free(c.buffer);
  }
  CHECK(read(*d, keep) == ramp(n));
}

TEST_CASE("a tensor over the device's limit is refused with the limit, and the device goes on") {
  const auto d = open();
  if (!d) return;
  const auto huge = d->allocate(std::int64_t{1} << 50);
  REQUIRE(!huge.ok());
  CHECK(huge.error().kind == "tensor-size");
  CHECK(huge.error().message.find("1,125,899,906,842,624") != std::string::npos);
  // States of every kind: refused with that limit where their sizes are asked for, as where they are reserved.
  using Kind = StateSlot::Kind;
  const std::int64_t wide = (d->largest_buffer() >> 12) + 1;           // of 1024 numbers: the least that is too much
  for (const StateSlot& slot :
       {StateSlot{.kind = Kind::recurrent, .sizes = {wide, 1024}}, StateSlot{.kind = Kind::ring, .sizes = {1024, wide}},
        StateSlot{.kind = Kind::cross_cache, .sizes = {wide, 1, 1024}}, StateSlot{.kind = Kind::latent_cache, .sizes = {wide, 1}},
        StateSlot{.sizes = {1, wide, 1}}}) {
    const auto size = d->state_bytes(slot, 1024, 1);
    const auto store = d->reserve(slot, 1024, 1);
    REQUIRE_FALSE(size.ok());
    REQUIRE_FALSE(store.ok());
    CHECK(size.error().kind == "tensor-size");
    CHECK(size.error().help.find("sequences") != std::string::npos);
    CHECK(store.error().message == size.error().message);
  }
  CHECK(read(*d, tensor(*d, {3}, ramp(3))) == ramp(3));
}

#if !defined(__SANITIZE_ADDRESS__)                         // which takes address space itself
TEST_CASE("memory that runs out is said with the heaps, what is in use and the last operation, and the device goes on") {
  const auto d = open();
  if (!d) return;
  // A software driver's memory is the process's, which can be bounded.
  if (d->description().find("llvmpipe") == std::string::npos) return void(std::printf("SKIPPED: the device's memory is its own\n"));
  const Tensor x = tensor(*d, {3}, ramp(3)), y = tensor(*d, {3});
  d->rms_norm(x, {}, {1e-5F, 0}, y);
  REQUIRE(d->finish().ok());
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit bounded = {pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + (std::uint64_t{600} << 20), before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_AS, &bounded) == 0);
  std::vector<const Buffer*> taken;
  std::optional<Error> wrong;
  for (int i = 0; i < 20 && !wrong; ++i) {
    auto b = d->allocate(std::int64_t{200} << 20);
    if (b) taken.push_back(*b);
    else wrong = std::move(b.error());
  }
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  REQUIRE(wrong.has_value());
  CHECK(!taken.empty());
  CHECK(wrong->kind == "out-of-memory");
  const std::string text = wrong->text();
  CAPTURE(text);
  for (const char* said : {"are in use)", "heap 0: ", "the last operation was rms_norm", "a smaller model"})
    CHECK(text.find(said) != std::string::npos);
  CHECK(read(*d, x) == ramp(3));
  for (const Buffer* b : taken) d->free(b);
  CHECK(d->allocate(std::int64_t{200} << 20).ok());
}
#endif

TEST_CASE("more of a tensor than a binding shows: rows are split, what cannot be is an error, and the device goes on") {
  const auto d = open({.binding_bytes = 64 * 1024});
  if (!d) return;
  // 40 rows of 1,000 numbers: 160,000 bytes.
  const std::int64_t rows = 40, k = 1000;
  const auto values = ramp(rows * k);
  Matrix table;
  table.columns = k;
  RowBlock b;
  b.rows = rows;
  b.row_bytes = k * 4;
  b.data = tensor(*d, {rows * k}, values);
  table.blocks.push_back(b);
  const std::vector<std::int32_t> wanted = {39, 0, 16, 17};
  const Tensor index = {*d->allocate(16), 0, DType::i32, {4}};
  d->write(std::as_bytes(std::span(wanted)), index);
  const Tensor out = tensor(*d, {4, k});
  d->take(table, index, 1, out);
  const auto got = read(*d, out);
  for (std::size_t r = 0; r < 4; ++r) CHECK(got[r * 1000 + 7] == values[static_cast<std::size_t>(wanted[r]) * 1000 + 7]);
  // A norm over one row that is longer than that.
  const Tensor wide = tensor(*d, {1, 20000}, ramp(20000)), norm = tensor(*d, {1, 20000});
  d->rms_norm(wide, {}, {1e-5F, 0}, norm);
  const Status s = d->finish();
  REQUIRE(!s);
  CHECK(s.error().kind == "tensor-size");
  CHECK(s.error().message.find("65,536") != std::string::npos);
  CHECK(read(*d, out) == got);
}

TEST_CASE("what cannot be cut is refused with both numbers: keys of one head, one sequence's, one row; and the device goes on") {
  const auto d = open({.binding_bytes = 64 * 1024});
  if (!d) return;
  const Batch at = *Batch::make(std::vector<std::int64_t>{300}, Outputs::all);
  const auto field = [&](const std::vector<std::int32_t>& v) {
    const Tensor t{*d->allocate(static_cast<std::int64_t>(v.size()) * 4), 0, DType::i32, {static_cast<std::int64_t>(v.size())}};
    d->write(std::as_bytes(std::span(v)), t);
    return t;
  };
  REQUIRE(d->begin({}, &at,
                   {field(at.positions), field(at.lengths), field(at.sequence), field(at.outputs), field(at.last), field(at.slots),
                    field(at.starts)})
              .ok());
  const Tensor x = tensor(*d, {300, 1, 64}), out = tensor(*d, {300, 1, 64});
  auto store = d->reserve({.sizes = {1, 64, 64}, .dtype = DType::f32}, 300, 1);
  REQUIRE(store.ok());
  d->append(static_cast<KvCache&>(**store), x, x, at);
  check_refused(*d, "76,800");
  d->attend(x, x, x, at, {}, out);
  check_refused(*d, "76,800");
  d->attend(x.as({1, 300, 1, 64}), x.as({1, 300, 1, 64}), x.as({1, 300, 1, 64}), {.mask = Mask::full}, out.as({1, 300, 1, 64}));
  check_refused(*d, "76,800");
  const Tensor wide = tensor(*d, {1, 20000}), sums = tensor(*d, {1});
  d->reduce(Reduction::sum, wide, {.axis = 1}, sums);
  check_refused(*d, "80,000");
  CHECK(read(*d, tensor(*d, {3}, ramp(3))) == ramp(3));
}

TEST_CASE("values go from one GPU to another, also those that take several pieces of the host's memory") {
  if (!open()) return;
  const auto gpu = [] { return std::shared_ptr<Device>(std::move(*open_vulkan({}))); };
  DeviceSet set({{"vulkan:0", gpu()}, {"vulkan:1", gpu()}});
  const std::int64_t rows = 5, n = (std::int64_t{1} << 20) + 3;            // 21 MB
  const auto values = ramp(rows * n);
  set.enter(0);
  const Tensor x = tensor(set, {rows, n}, values), norm = tensor(set, {rows, n});
  set.enter(1);
  const Tensor back = tensor(set, {n});
  set.rms_norm(x, {}, {1e-5F, 0}, norm);                   // all of x goes over
  set.enter(0);
  const Tensor row = {norm.buffer, 3 * n * 4, DType::f32, {1, n}};
  set.rms_norm(row, {}, {0, 0}, back.as({1, n}));          // and one row comes back, which stays as it is
  const auto got = read(set, norm), one = read(set, back);
  for (const std::int64_t r : {std::int64_t{0}, std::int64_t{3}, rows - 1}) {
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i)
      squares += static_cast<double>(values[static_cast<std::size_t>(r * n + i)]) * values[static_cast<std::size_t>(r * n + i)];
    const double root = std::sqrt(squares / static_cast<double>(n));
    for (const std::int64_t i : {std::int64_t{0}, n / 2, n - 1}) {
      const double expected = values[static_cast<std::size_t>(r * n + i)] / root;
      CHECK(std::fabs(got[static_cast<std::size_t>(r * n + i)] - expected) < 1e-5);
      if (r == 3) CHECK(std::fabs(one[static_cast<std::size_t>(i)] - expected) < 1e-5);
    }
  }
  CHECK(set.operations().find("2 transfers between them, 25.2 MB") != std::string::npos);
  for (const Tensor& t : {x, norm, back}) set.free(t.buffer);
}

TEST_CASE("a device that is several says what fails on one of them") {
  const auto d = open();
  if (!d) return;
  std::shared_ptr<Device> gpu = std::move(*open_vulkan({.fail_submit = 1})), host = std::move(*open_cpu({.threads = 1}));
  DeviceSet set({{"cpu", host}, {"vulkan:0", gpu}});
  for (const bool waits : {true, false}) {
    set.enter(1);
    auto a = set.allocate(4000), b = set.allocate(4000);
    REQUIRE(a.ok());
    REQUIRE(b.ok());
    const auto values = ramp(1000);
    const Tensor x{*a, 0, DType::f32, {1000}}, y{*b, 0, DType::f32, {1000}};
    set.write(std::as_bytes(std::span(values)), x);
    set.rms_norm(x, {}, {1e-5F, 0}, y);
    if (waits) {
      const Status s = set.finish();
      REQUIRE_FALSE(s.ok());
      CHECK(s.error().kind == "device-lost");
    } else {                                               // what the other member would read
      set.enter(0);
      CHECK_THROWS_AS(set.rms_norm(y, {}, {1e-5F, 0}, x), StepFailure);
    }
    set.free(*a);
    set.free(*b);
  }
}

TEST_CASE("a lost device says so, once and again, can be destroyed, and another one works") {
  auto d = open();
  if (!d) return;
  for (const std::int64_t k : {1, 2, 3}) {
    CAPTURE(k);
    auto lost = open({.fail_submit = k});
    REQUIRE(lost);
    int failures = 0;
    for (int round = 0; round < 5; ++round) {
      auto a = lost->allocate(4000), b = lost->allocate(4000);
      REQUIRE(a.ok());
      REQUIRE(b.ok());
      const auto values = ramp(1000);
      const Tensor x{*a, 0, DType::f32, {1000}}, y{*b, 0, DType::f32, {1000}};
      lost->write(std::as_bytes(std::span(values)), x);
      lost->rms_norm(x, {}, {1e-5F, 0}, y);
      const Status s = lost->finish();
      if (!s) {
        ++failures;
        CHECK(s.error().kind == "device-lost");
        CHECK(!s.error().help.empty());
      }
      // From the failure on nothing runs any more; a round has one submission or a few.
      CHECK(s.ok() == (failures == 0));
      if (round + 1 == k) CHECK(failures > 0);
      lost->free(x.buffer);
      lost->free(y.buffer);
    }
    CHECK(failures >= 5 - static_cast<int>(k) + 1);
    lost.reset();
    CHECK(read(*d, tensor(*d, {3}, ramp(3))) == ramp(3));
  }
}

TEST_CASE("twenty runs give the same bits") {
  const auto d = open();
  if (!d) return;
  const std::int64_t rows = 37, k = 1003;
  std::vector<float> values = ramp(rows * k);
  for (float& v : values) v = 1.0F / v;
  const Tensor x = tensor(*d, {rows, k}, values), y = tensor(*d, {rows, k}), sums = tensor(*d, {rows});
  std::vector<float> first;
  for (int i = 0; i < 20; ++i) {
    d->rms_norm(x, {}, {1e-5F, 0}, y);
    d->reduce(Reduction::sum, y, {.axis = 1}, sums);
    auto got = read(*d, sums);
    if (i == 0) first = got;
    CHECK(got == first);
  }
}

TEST_CASE("a step that is as one before is submitted again, to the same bits; a load option records each anew") {
  std::vector<float> first;
  for (const bool graph : {true, false}) {
    const auto d = open({.device_graph = graph});
    if (!d) return;
    const Tensor x = tensor(*d, {3, 100}), y = tensor(*d, {3, 100}), z = tensor(*d, {3});
    for (int step = 0; step < 6; ++step) {
      // New numbers at the same place, and one step of another form between the others.
      std::vector<float> values = ramp(300);
      values[0] = static_cast<float>(step % 3);
      d->write(std::as_bytes(std::span(values)), x);
      d->rms_norm(x, {}, {step == 3 ? 1.0F : 1e-5F, 0}, y);
      d->reduce(Reduction::sum, y, {.axis = 1}, z);
      const auto got = read(*d, z);
      if (step == 0 && graph) first = got;
      if (step == 0) CHECK(got == first);
      if (step == 1 || step == 3) CHECK(got != first);
    }
    const std::string counts = d->operations();
    CAPTURE(counts);
    CHECK((counts.find(", 0 of them recorded before") == std::string::npos) == graph);
  }
}

TEST_CASE("what has a state for each sequence is submitted again for other slots and other lengths, and gives the same bits each time") {
  constexpr std::int64_t tokens = 6, slots = 4, heads = 3, n = 20, width = heads * n;
  // Two sequences of six tokens together, in any slots.
  struct Call {
    std::vector<std::int32_t> slots;
    std::int64_t first;
  };
  const Call calls[] = {{{2, 0}, 5}, {{1, 3}, 1}, {{3, 2}, 3}, {{2, 0}, 1}};
  std::vector<std::vector<float>> first;
  for (int run = 0; run < 20; ++run) {
    const auto d = open({.device_graph = run % 2 == 0});
    if (!d) return;
    const auto wave = [&](Shape shape, float step) {
      std::vector<float> v(static_cast<std::size_t>(shape.count()));
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(static_cast<float>(i) * step);
      return tensor(*d, shape, v);
    };
    const auto positive = [&](Shape shape, float sign) {
      return tensor(*d, shape, std::vector<float>(static_cast<std::size_t>(shape.count()), sign * 0.25F));
    };
    const auto field = [&](std::int64_t count) { return Tensor{*d->allocate(count * 4), 0, DType::i32, {count}}; };
    const auto fill = [&](const std::vector<std::int32_t>& v, const Tensor& t) { d->write(std::as_bytes(std::span(v)), t); };
    const BatchTensors fields = {field(tokens), field(tokens), field(tokens), field(2), field(2), field(2), field(3)};
    const Tensor x = wave({tokens, width}, 0.7F), w = wave({width, 3}, 0.9F), ring = wave({slots, 2, width}, 0.3F),
                 turned = tensor(*d, {tokens, width});
    const Tensor b = wave({tokens, 1, n}, 0.21F), c = wave({tokens, 1, n}, 0.4F), square = wave({slots, heads, n, n}, 0.11F),
                 other = wave({slots, heads, n, n}, 0.13F), scanned = tensor(*d, {tokens, width}), changed = tensor(*d, {tokens, width});
    const Tensor dt = positive({tokens, heads}, 1), falling = positive({tokens, heads}, -1), a = positive({heads}, -1),
                 through = positive({heads}, 1);
    std::vector<std::vector<float>> got;
    for (const Call& call : calls) {
      Batch at;
      at.slots = call.slots;
      at.starts = {0, static_cast<std::int32_t>(call.first), tokens};
      for (std::int64_t t = 0; t < tokens; ++t) {
        at.positions.push_back(static_cast<std::int32_t>(t));
        at.sequence.push_back(t < call.first ? 0 : 1);
      }
      fill(at.slots, fields.slots);
      fill(at.starts, fields.starts);
      fill(at.sequence, fields.sequence);
      REQUIRE(d->begin({}, &at, fields).ok());
      d->causal_conv1d(x, w, {}, ring, at, turned);
      d->ssd_scan({turned.as({tokens, heads, n}), dt, a, b, c, through}, square, at, scanned.as({tokens, heads, n}));
      d->gated_delta({b, c, scanned.as({tokens, heads, n}), falling, dt, 0.5F, 1e-6F}, other, at, changed.as({tokens, heads, n}));
      got.push_back(read(*d, changed));
    }
    for (const Tensor& t : {ring, square, other}) got.push_back(read(*d, t));
    if (run == 0) first = got;
    CHECK(got == first);
    const std::string counts = d->operations();
    CAPTURE(counts);
    CHECK((counts.find(run % 2 == 0 ? ", 3 of them recorded before" : ", 0 of them recorded before") != std::string::npos));
  }
}

TEST_CASE("a state of which one head is more than a binding shows is refused with both numbers, and the device goes on") {
  const auto d = open({.binding_bytes = 64 * 1024});
  if (!d) return;
  const Batch at = *Batch::make(std::vector<std::int64_t>{1}, Outputs::all);
  REQUIRE(d->begin({}, &at, {}).ok());
  const Tensor x = tensor(*d, {1, 1, 130}), one = tensor(*d, {1, 1}), state = tensor(*d, {2, 1, 130, 130}), out = tensor(*d, {1, 1, 130});
  d->ssd_scan({x, one, one.as({1}), x, x, one.as({1})}, state, at, out);
  check_refused(*d, "67,600");
  d->gated_delta({x, x, x, one, one, 1, 0}, state, at, out);
  check_refused(*d, "67,600");
  const Tensor wide = tensor(*d, {1, 9000}), w = tensor(*d, {9000, 3}), ring = tensor(*d, {2, 2, 9000}), sum = tensor(*d, {1, 9000});
  d->causal_conv1d(wide, w, {}, ring, at, sum);
  check_refused(*d, "72,000");
  CHECK(read(*d, tensor(*d, {3}, ramp(3))) == ramp(3));
}
