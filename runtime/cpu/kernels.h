// The seam between the device and its kernels, which are compiled once for each instruction set: plain structs and a
// table of functions. Kernels are single-threaded; the device cuts the work and gives each worker its scratch.
//
// Nothing here or in kernels/ may be an inline function with a name that other files share (std:: templates included):
// the linker keeps one copy of such a function, and it could be the one with instructions that the machine lacks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace modelc::cpu {

// How rows of weights are stored; what each means is in kernels/encodings.h.
enum class Stored : std::uint8_t { f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

// out[m, n] = x[m, k] · w[n, k]ᵀ (+ bias[n]) (+ residual[m, n]). Strides are distances between rows. The sum for one
// element has one order, whatever m and n are: a token gives the same bits alone and in a batch.
struct ProductArgs {
  const float* x = nullptr;
  std::int64_t x_stride = 0;                               // floats
  // Or null. For quantised weights: x rounded to 13 bits, a record of rounded_size(k) bytes a token; then x is not read.
  const std::byte* rounded = nullptr;
  std::int64_t rounded_stride = 0;                         // bytes
  const std::byte* w = nullptr;                            // rows as stored, at any address
  std::int64_t w_stride = 0;                               // bytes; rows of blocks hold whole ones: k is a multiple
  Stored encoding = Stored::f32;
  std::int64_t m = 0, n = 0, k = 0;
  const float* bias = nullptr;                             // or null
  const float* residual = nullptr;                         // or null; may be out
  std::int64_t residual_stride = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  float* scratch = nullptr;                                // product_scratch(m, n, k) floats, aligned to 64 bytes
};

// out[m, k] = x[m, n] · w[n, k], or what `out` holds and that: the rows of w are added up. An element's sum has one order here too.
struct CombineArgs {
  const float* x = nullptr;
  std::int64_t x_stride = 0;                               // floats
  const std::byte* w = nullptr;                            // as ProductArgs::w
  std::int64_t w_stride = 0;
  Stored encoding = Stored::f32;
  std::int64_t m = 0, n = 0, k = 0;                        // n: at least 1
  bool add = false;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  float* scratch = nullptr;                                // combine_scratch() floats
};

// Keys lie in blocks of 16 positions, transposed: [position / 16][d][position % 16], so that a vector holds one channel
// of 16 keys. Positions are taken in blocks of 64 and chunks of 512, both counted from position 0: a row's sums have
// one order, whoever computes them.
inline constexpr std::int64_t key_block = 16;
inline constexpr std::int64_t score_block = 64;
inline constexpr std::int64_t attend_chunk = 512;
inline constexpr int attend_max_rows = 64;

// One chunk of positions for several rows (token, query head) that read the same keys.
struct AttendChunk {
  int rows = 0;                                            // at most attend_max_rows
  const float* const* q = nullptr;                         // per row: [d]
  const std::int64_t* lo = nullptr;                        // per row: it sees positions lo <= p < hi
  const std::int64_t* hi = nullptr;
  const std::byte* keys = nullptr;                         // of position 0, blocked as said above
  std::int64_t key_stride = 0;                             // not 0: [position][key_stride] instead, and q's rows are d apart
  const std::byte* values = nullptr;                       // of position 0: [position][value_stride]
  Stored stored = Stored::f32;                             // keys and values: f32, f16 or bf16
  std::int64_t value_stride = 0;
  std::int64_t d = 0, dv = 0;
  float scale = 1, softcap = 0;
  std::int64_t begin = 0, end = 0;                         // positions; begin is a multiple of attend_chunk
  // Result, per row: max of the scores (-inf: saw nothing), sum of exp(score - max), sum of exp(score - max) · v.
  float* max = nullptr;
  float* sum = nullptr;
  float* acc = nullptr;                                    // [rows][dv]
  // attend_max_rows · score_block floats, with a key_stride product_scratch(rows, score_block, d) more; aligned to 64 bytes.
  float* scratch = nullptr;
};

// Rows of one head's state [p, n] over the tokens of a sequence (Device::ssd_scan). Strides are between tokens, in floats.
struct SsdPiece {
  const float* x = nullptr;                                // [p]
  std::int64_t x_stride = 0;
  const float* b = nullptr;                                // [n], and c
  const float* c = nullptr;
  std::int64_t shared_stride = 0;
  const float* decay = nullptr;                            // [tokens] exp(dt · a)
  const float* step = nullptr;                             // [tokens] dt
  float skip = 0;                                          // d
  float* state = nullptr;
  std::int64_t tokens = 0, p = 0, n = 0;
  float* out = nullptr;                                    // [p]
  std::int64_t out_stride = 0;
};

// Columns of one head's state [dk, dv] over the tokens of a sequence (Device::gated_delta).
struct DeltaPiece {
  const float* q = nullptr;                                // [dk], and k
  const float* k = nullptr;
  std::int64_t key_stride = 0;
  const float* v = nullptr;                                // [columns]
  std::int64_t v_stride = 0;
  const float* decay = nullptr;                            // [tokens] exp of the decay
  const float* beta = nullptr;                             // [tokens]
  float scale = 1;
  float* state = nullptr;                                  // rows of dv floats, from the first of the columns on
  std::int64_t tokens = 0, dk = 0, dv = 0, columns = 0;
  float* out = nullptr;                                    // [columns]
  std::int64_t out_stride = 0;
};

struct Kernels {
  const char* isa;                                         // "avx512"
  int (*product_rows)();                                   // rows of w that are computed together: cut at multiples
  std::int64_t (*product_scratch)(std::int64_t m, std::int64_t n, std::int64_t k);
  void (*product)(const ProductArgs& args);
  std::int64_t (*combine_scratch)();
  void (*combine)(const CombineArgs& args);
  // The record of one token's activations for products with quantised weights: in each group of 32 the codes of 13 bits (-4095 to 4095)
  // and one scale, largest / 4095. k is a multiple of 32.
  std::int64_t (*rounded_size)(std::int64_t k);
  void (*round)(const float* x, std::int64_t k, std::byte* to);
  void (*attend)(const AttendChunk& chunk);
  // Joins a further chunk's result into a row's: max, sum, acc[dv].
  void (*attend_join)(float* max, float* sum, float* acc, float other_max, float other_sum, const float* other_acc, std::int64_t dv);
  // out[dv] = acc / sum, with one more logit in the sum when `sink` is given; a row that saw nothing gives 0.
  void (*attend_finish)(float max, float sum, const float* acc, const float* sink, std::int64_t dv, float* out);
  // One row: to = from · scale, as f32.
  void (*convert)(Stored encoding, const std::byte* from, std::int64_t n, float scale, float* to);
  // To f16 or bf16, to the nearest, ties to even; in f16 a finite number beyond 65504 becomes that.
  void (*narrow)(Stored as, const float* from, std::int64_t n, std::uint16_t* to);
  // One row: out = x / sqrt(mean(x²) + eps) · (w + offset). w may be null. May be in place.
  void (*rms_norm)(const float* x, const float* w, float eps, float offset, std::int64_t n, float* out);
  // The same of x + y, which goes to `sum`.
  void (*add_rms_norm)(const float* x, const float* y, const float* w, float eps, float offset, std::int64_t n, float* sum, float* out);
  void (*layer_norm)(const float* x, const float* w, const float* b, float eps, std::int64_t n, float* out);
  // One token: x [heads, d]; the first 2 · half channels are turned by cos, sin [half]. May be in place.
  void (*rope)(const float* x, const float* cos, const float* sin, std::int64_t heads, std::int64_t d, std::int64_t half, bool adjacent,
               float* out);
  // One token of a depthwise convolution: out[i] = bias[i] + Σ_j w[j][i] · rows[j][i], j < k, i < c. bias may be null.
  void (*conv_row)(const float* const* rows, const float* w, std::int64_t w_stride, const float* bias, std::int64_t k, std::int64_t c,
                   float* out);
  void (*ssd_scan)(const SsdPiece& piece);
  void (*gated_delta)(const DeltaPiece& piece);
};

extern const Kernels kernels_portable;
#if defined(__x86_64__)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
extern const Kernels kernels_avx512vnni;
#endif

}  // namespace modelc::cpu
