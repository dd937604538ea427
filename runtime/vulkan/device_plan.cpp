#include "runtime/vulkan/device_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "runtime/base/strings.h"
#include "runtime/vulkan/shaders.h"

namespace modelc::vulkan {
namespace {

constexpr std::uint64_t mib = 1024 * 1024;
constexpr std::uint32_t push_bytes = 128, matmul_group = 64, matmul_shared = 2 * 32 * 33 * 4;

Error refused(const DeviceDescription& d, const std::string& what) {
  return {"vulkan-device", d.name + ": " + what, {}, "choose another device (`modelc devices` lists them), or run on the CPU"};
}

// The first type that has what is wanted; where none has, the first that has what is needed.
template <class Needed, class Wanted> std::optional<std::uint32_t> choose_type(const DeviceDescription& d, Needed needed, Wanted wanted) {
  std::optional<std::uint32_t> best;
  std::uint64_t best_bytes = 0;
  bool best_wanted = false;
  for (std::uint32_t i = 0; i < d.types.size(); ++i) {
    const MemoryType& t = d.types[i];
    if (!needed(t) || t.heap >= d.heaps.size()) continue;
    const bool is_wanted = wanted(t);
    const std::uint64_t bytes = d.heaps[t.heap].bytes;
    // Of equals the one on the larger heap: a window of 256 MiB onto a discrete card's memory is not it.
    if (best && (best_wanted > is_wanted || (best_wanted == is_wanted && best_bytes >= bytes))) continue;
    best = i;
    best_bytes = bytes;
    best_wanted = is_wanted;
  }
  return best;
}

}  // namespace

const char* name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::integrated: return "integrated GPU";
    case DeviceKind::discrete: return "discrete GPU";
    case DeviceKind::virtual_gpu: return "virtual GPU";
    case DeviceKind::cpu: return "CPU";
    case DeviceKind::other: break;
  }
  return "other device";
}

std::vector<std::string> feature_names() {
  return {"subgroup", "float16", "int8", "int16", "storage16", "storage8", "float64", "int64", "broadcast"};
}

Result<DevicePlan> plan_device(const DeviceDescription& d, const PlanOptions& options) {
  DevicePlan p;
  if (d.version_major == 1 && d.version_minor < 2)
    return refused(d, "it has Vulkan " + std::to_string(d.version_major) + "." + std::to_string(d.version_minor) + "; 1.2 is needed");
  if (d.max_push_bytes < push_bytes)
    return refused(d, "it has " + std::to_string(d.max_push_bytes) + " bytes of push constants; 128 are needed");
  if (d.max_group_size < matmul_group || d.max_group_x < matmul_group)
    return refused(
        d, "its workgroups have at most " + std::to_string(std::min(d.max_group_size, d.max_group_x)) + " invocations; 64 are needed");
  if (d.shared_bytes < matmul_shared)
    return refused(d, "a workgroup has " + grouped(std::uint64_t{d.shared_bytes}) + " bytes of shared memory; " +
                          grouped(std::uint64_t{matmul_shared}) + " are needed");

  // A family that computes and draws nothing leaves the screen alone; else any that computes.
  std::optional<std::uint32_t> family;
  for (std::uint32_t i = 0; i < d.queues.size(); ++i) {
    const QueueFamily& q = d.queues[i];
    if (!q.compute || q.count == 0) continue;
    if (!family || (d.queues[*family].graphics && !q.graphics)) family = i;
  }
  if (!family) return refused(d, "none of its queues computes");
  p.queue_family = *family;

  const auto any = [](const MemoryType&) { return true; };
  const auto device = choose_type(d, any, [](const MemoryType& t) { return t.device_local; });
  const auto upload = choose_type(
      d, [](const MemoryType& t) { return t.host_visible && t.coherent; },
      [](const MemoryType& t) { return !t.device_local && !t.cached; });
  const auto readback = choose_type(
      d, [](const MemoryType& t) { return t.host_visible && t.coherent; }, [](const MemoryType& t) { return t.cached; });
  if (!device || !upload || !readback) return refused(d, "the host sees none of its memory");
  p.device_type = *device;
  p.upload_type = *upload;
  p.readback_type = *readback;

  const std::uint64_t heap = d.heaps[d.types[p.device_type].heap].bytes;
  p.alignment = std::bit_ceil(std::max<std::uint32_t>(d.storage_alignment, 64));
  p.largest_tensor = std::min(d.max_allocation > 0 ? d.max_allocation : heap, heap);
  // An eighth of a small heap; few blocks of a large one.
  p.block_bytes = std::clamp<std::uint64_t>(std::bit_floor(std::max<std::uint64_t>(heap / 8, mib)), mib, 256 * mib);
  p.block_bytes = std::min(p.block_bytes, std::max<std::uint64_t>(p.largest_tensor, 1));
  p.binding_bytes = d.max_storage_range;
  if (options.binding_bytes > 0) p.binding_bytes = std::clamp<std::uint64_t>(options.binding_bytes, 4 * p.alignment, d.max_storage_range);
  p.binding_bytes = p.binding_bytes / p.alignment * p.alignment;
  if (p.binding_bytes < 64 * 1024 && options.binding_bytes == 0)
    return refused(d, "a shader sees " + grouped(d.max_storage_range) + " bytes of a buffer; 65,536 are needed");
  p.staging_bytes = std::clamp<std::uint64_t>(heap / 64, mib, 16 * mib);
  p.max_groups = d.max_groups;
  if (options.max_groups > 0)
    for (std::uint32_t& n : p.max_groups) n = std::min(n, options.max_groups);
  p.max_bindings = d.max_bindings;

  const auto masked = [&](const char* feature) {
    return std::find(options.masked.begin(), options.masked.end(), feature) != options.masked.end();
  };
  const auto take = [&](bool has, const char* feature, std::uint32_t bit) {
    if (has && !masked(feature)) p.features |= bit;
  };
  const bool lanes = d.subgroup_arithmetic && d.full_subgroups && std::has_single_bit(d.subgroup_size) && d.subgroup_size >= 4 &&
                     d.subgroup_size >= d.subgroup_min && d.subgroup_size <= d.subgroup_max;
  take(lanes, "subgroup", needs_subgroup);
  take(d.float16, "float16", needs_float16);
  take(d.int8, "int8", needs_int8);
  take(d.int16, "int16", needs_int16);
  take(d.storage16, "storage16", needs_storage16);
  take(d.storage8, "storage8", needs_storage8);
  take(d.float64, "float64", needs_float64);
  take(d.int64, "int64", needs_int64);
  take(d.subgroup_ballot && lanes && d.subgroup_size >= 8 && !masked("subgroup"), "broadcast", needs_broadcast);
  take(d.subgroup_arithmetic, "subgroup", needs_lane_sums);
  take(d.subgroup_shuffle, "subgroup", needs_lane_shuffles);
  if ((p.features & needs_subgroup) != 0) {
    p.subgroup = d.subgroup_size;
    // Several rows a workgroup, as wide as its limit lets one be.
    p.product_group = std::min(std::bit_floor(std::min(d.max_group_size, d.max_group_x)), std::max(64U, p.subgroup));
    if (p.product_group < p.subgroup) {
      p.subgroup = 0;
      p.features &= ~std::uint32_t{needs_subgroup | needs_broadcast};
      p.product_group = 64;
    }
  }
  p.shared_bytes = d.shared_bytes;
  p.largest_group = std::bit_floor(std::min(d.max_group_size, d.max_group_x));
  if (d.kind == DeviceKind::integrated) p.fill_groups = 64;
  if (d.kind == DeviceKind::cpu) {
    p.loop_rounds = 60'000;                                // of 65,535: what is counted is about right
    p.fill_groups = 4;
    p.attend_queries = 16;                                 // its shaders take long to compile, by what they unroll
    // Invocations are lanes of a vector: a barrier costs as much as they are many.
    p.row_group = std::clamp(d.subgroup_size, 4U, 64U);
    p.row_group = std::bit_floor(p.row_group) * 2;
    if (p.subgroup > 0 && (p.features & needs_broadcast) != 0) p.lane_rows = 2, p.lane_tokens = 16;
  }
  // A submission stays far below the second or two after which systems take a GPU away.
  p.dispatches = d.kind == DeviceKind::discrete ? 1024 : 256;
  p.work = d.kind == DeviceKind::discrete ? std::uint64_t{200} << 30 : std::uint64_t{8} << 30;
  return p;
}

std::vector<std::size_t> order_devices(std::span<const DeviceDescription> all) {
  const auto rank = [&](std::size_t i) {
    constexpr DeviceKind best[] = {DeviceKind::discrete, DeviceKind::integrated, DeviceKind::virtual_gpu, DeviceKind::other,
                                   DeviceKind::cpu};
    const auto kind = std::find(std::begin(best), std::end(best), all[i].kind) - std::begin(best);
    return std::pair(!plan_device(all[i]).ok(), kind);
  };
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return order;
}

DeviceMemory memory_of(const DeviceDescription& d, std::uint64_t host_available) {
  const MemoryHeap* heap = nullptr;
  if (const auto plan = plan_device(d)) {
    heap = &d.heaps[d.types[plan->device_type].heap];
  } else {
    for (const MemoryHeap& h : d.heaps)
      if (h.device_local && (heap == nullptr || h.bytes > heap->bytes)) heap = &h;
  }
  if (heap == nullptr) return {};
  DeviceMemory m{heap->bytes, heap->free.value_or(heap->bytes), heap->free.has_value()};
  const bool shared = d.kind == DeviceKind::integrated || d.kind == DeviceKind::cpu;
  if (shared && host_available > 0) m.free = std::min(m.free, host_available);
  return m;
}

std::optional<std::array<std::uint32_t, 3>> fold_groups(std::uint64_t groups, const std::array<std::uint32_t, 3>& most) {
  std::array<std::uint32_t, 3> g{1, 1, 1};
  const std::uint64_t x = std::max<std::uint64_t>(most[0], 1), y = std::max<std::uint64_t>(most[1], 1);
  if (groups <= x) {
    g[0] = static_cast<std::uint32_t>(std::max<std::uint64_t>(groups, 1));
    return g;
  }
  // Rows of equal length, as few groups too many as may be.
  const std::uint64_t rows = (groups + x - 1) / x;
  if (rows <= y) {
    g[0] = static_cast<std::uint32_t>((groups + rows - 1) / rows);
    g[1] = static_cast<std::uint32_t>(rows);
    return g;
  }
  const std::uint64_t planes = (rows + y - 1) / y;
  if (planes > std::max<std::uint64_t>(most[2], 1)) return std::nullopt;
  g[0] = static_cast<std::uint32_t>(x);
  g[1] = static_cast<std::uint32_t>(y);
  g[2] = static_cast<std::uint32_t>(planes);
  return g;
}

std::vector<RowPiece> split_rows(std::int64_t at, std::int64_t rows, std::int64_t row_bytes, const DevicePlan& plan) {
  std::vector<RowPiece> pieces;
  const auto limit = static_cast<std::int64_t>(plan.binding_bytes), alignment = static_cast<std::int64_t>(plan.alignment);
  for (std::int64_t first = 0; first < rows;) {
    const std::int64_t skipped = (at + first * row_bytes) % alignment;
    // A word at the end may be read whole.
    const std::int64_t fit = row_bytes > 0 ? (limit - skipped - 4) / row_bytes : rows;
    if (fit < 1) return {};
    const std::int64_t n = std::min(fit, rows - first);
    pieces.push_back({first, n});
    first += n;
  }
  return pieces;
}

std::vector<RowPiece> split_alike(std::int64_t rows, std::int64_t row_bytes, const DevicePlan& plan) {
  std::vector<RowPiece> pieces;
  const std::int64_t room = static_cast<std::int64_t>(plan.binding_bytes) - static_cast<std::int64_t>(plan.alignment) - 4;
  const std::int64_t fit = row_bytes > 0 ? room / row_bytes : rows;
  if (fit < 1) return {};
  for (std::int64_t first = 0; first < rows; first += fit) pieces.push_back({first, std::min(fit, rows - first)});
  return pieces;
}

AttendPlan plan_attend(const AttendShape& a, const DevicePlan& plan) {
  // Queries of a tile: an invocation keeps a sum for each of its queries and channels, and shared memory a row of scores for each
  // query and (if it fits) the query.
  constexpr std::int64_t most_sums = 64, most_channels = 8, least_keys = 512;
  AttendPlan p;
  const std::int64_t group = plan.attend_group, together = a.query_heads / a.heads;
  const auto pieces = [](std::int64_t n, std::int64_t of) { return (n + of - 1) / of; };
  p.value_pieces = static_cast<std::uint32_t>(std::max<std::int64_t>(pieces(a.dv, most_channels * group), 1));
  const std::int64_t dv = std::max<std::int64_t>(pieces(a.dv, p.value_pieces), 1);
  const std::int64_t numbers = plan.shared_bytes / 4;
  p.shared_q = numbers / (a.d + group + 3) > 0;
  const std::int64_t fit = numbers / ((p.shared_q ? a.d : 0) + group + 3);
  // Where there are few, they are for more workgroups, unless the keys are many.
  const auto longest = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(a.longest, 1))));
  const std::int64_t busy = a.rows * a.query_heads * p.value_pieces * std::max<std::int64_t>(longest / least_keys, 1) / plan.fill_groups;
  const std::int64_t queries =
      std::max<std::int64_t>(std::min({std::int64_t{plan.attend_queries}, most_sums / pieces(dv, group), fit, busy}), 1);
  const std::int64_t head_pieces = pieces(together, queries), heads = pieces(together, head_pieces);
  // Few lengths of a tile, so that few shaders are made; none longer than what a sequence brings.
  const auto tokens = std::min(std::bit_floor(static_cast<std::uint64_t>(queries / heads)),
                               std::bit_ceil(static_cast<std::uint64_t>(pieces(a.rows, std::max<std::int64_t>(a.sequences, 1)))));
  p.heads = static_cast<std::uint32_t>(heads);
  p.head_pieces = static_cast<std::uint32_t>(head_pieces);
  p.tokens = static_cast<std::uint32_t>(tokens);
  // What an invocation reads for its sums, queries and keys, is least where it has about as many of both.
  const std::int64_t all = heads * p.tokens;
  for (std::uint32_t n = 2; all % n == 0 && n <= 8; n *= 2)
    if (n + all / n < p.q_groups + all / p.q_groups) p.q_groups = n;
  p.channels = static_cast<std::uint32_t>(pieces(dv, group / p.q_groups));
  // Too few workgroups for the device, and many keys: as many parts as fill it. By the next power of two of the keys, so that a
  // further token changes nothing.
  const std::int64_t groups = pieces(a.rows, p.tokens) * a.heads * head_pieces * p.value_pieces;
  if (groups < plan.fill_groups && longest > least_keys) {
    const auto wanted = std::bit_ceil(static_cast<std::uint64_t>(pieces(plan.fill_groups, groups)));
    p.parts = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, static_cast<std::uint64_t>(longest / least_keys)));
    p.part_keys = static_cast<std::uint32_t>(longest / p.parts);
  }
  // A tile of `group` keys takes a round for each channel of a key, three for each key (the largest, the sum, the values), two for
  // each query, and those of what is around them. Keys that are more than the driver's rounds go are others' part.
  if (plan.loop_rounds > 0) {
    const std::int64_t of_tile = a.d + 3 * group + 2 * all + 16;
    const auto most = static_cast<std::int64_t>(
        std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(plan.loop_rounds / of_tile, 1) * group)));
    if (longest / p.parts > most) {
      p.parts = static_cast<std::uint32_t>(longest / most);
      p.part_keys = static_cast<std::uint32_t>(most);
    }
  }
  return p;
}

ScanPlan plan_scan(const ScanShape& a, const DevicePlan& plan) {
  // In registers: of the state, and of all columns of a team. Elements of one column beyond which a subgroup is too narrow.
  constexpr std::int64_t most_state = 64, most_columns = 8, most_of_subgroup = 32, few_held = 8;
  ScanPlan p;
  const auto pieces = [](std::int64_t n, std::int64_t of) { return (n + of - 1) / of; };
  const auto sums = [&](std::int64_t columns) { return a.column_sums * columns + a.team_sums; };
  std::int64_t lanes = plan.subgroup, group = plan.product_group;
  p.subgroups = lanes > 0 && pieces(a.n, lanes) <= most_of_subgroup;
  if (!p.subgroups) {
    // Each sum in shared memory once for every invocation, and once for every team.
    const auto fits = [&](std::int64_t l) {
      return sums(1) * (std::max<std::int64_t>(l, plan.row_group) + plan.row_group) * 4 <= plan.shared_bytes;
    };
    for (lanes = 1; lanes * few_held < a.n && 2 * lanes <= plan.largest_group && fits(2 * lanes);) lanes *= 2;
    group = std::max<std::int64_t>(lanes, plan.row_group);
  }
  const std::int64_t held = pieces(a.n, lanes);
  std::int64_t teams = group / lanes;
  auto columns = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::clamp<std::int64_t>(most_state / held, 1, std::min(most_columns, a.columns)))));
  // Fewer where that makes workgroups that the device has nothing to do without, or where shared memory ends.
  const auto groups = [&] { return a.sequences * a.heads * pieces(a.columns, teams * columns); };
  const auto shared = [&] { return p.subgroups ? 0 : sums(columns) * (group + teams) * 4; };
  while (columns > 1 && (groups() < plan.fill_groups || shared() > plan.shared_bytes)) columns /= 2;
  while (teams > 1 && teams / 2 * columns >= a.columns) teams /= 2;
  p.lanes = static_cast<std::uint32_t>(lanes);
  p.group = static_cast<std::uint32_t>(lanes * teams);
  p.held = static_cast<std::uint32_t>(held);
  p.columns = static_cast<std::uint32_t>(columns);
  p.pieces = static_cast<std::uint32_t>(pieces(a.columns, teams * columns));
  // Loops over the elements held, twice and once more for each column; over columns; over sums, and in shared memory each of them over
  // the lanes.
  const std::int64_t of_sums =
      p.subgroups || lanes == 1 ? sums(columns) : 2 * sums(columns) + pieces(sums(columns) * teams, lanes * teams) * (lanes + 1);
  p.token_rounds = static_cast<std::uint32_t>(std::min<std::int64_t>(3 * columns * (held + 2) + 5 * held + of_sums + 2, UINT32_MAX));
  return p;
}

std::uint32_t row_group_of(std::int64_t n, std::int64_t loops, const DevicePlan& plan) {
  std::uint32_t group = plan.row_group;
  if (plan.loop_rounds > 0)
    while (group < plan.largest_group && (n + group - 1) / group * loops > plan.loop_rounds) group *= 2;
  return group;
}

std::uint32_t pairs_together(std::int64_t pairs, std::int64_t experts) { return pairs >= 6 * experts ? 8 : pairs >= 2 * experts ? 4 : 1; }

}  // namespace modelc::vulkan
