#include "runtime/encoding/encode.h"

#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "runtime/encoding/convert.h"
#include "runtime/encoding/encoders.h"

namespace modelc {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

void to_f64(const float* x, std::byte* b) {
  const double v = *x;
  std::memcpy(b, &v, sizeof v);
}
void to_f32(const float* x, std::byte* b) { std::memcpy(b, x, sizeof *x); }
void to_f16(const float* x, std::byte* b) { blocks::put_u16(b, f16_from_f32(*x)); }
void to_bf16(const float* x, std::byte* b) { blocks::put_u16(b, bf16_from_f32(*x)); }

}  // namespace

BlockEncoder block_encoder(Encoding encoding) {
  switch (encoding) {
    case Encoding::f64: return to_f64;
    case Encoding::f32: return to_f32;
    case Encoding::f16: return to_f16;
    case Encoding::bf16: return to_bf16;
    case Encoding::mxfp4: return blocks::to_mxfp4;
    case Encoding::q4_0: return blocks::to_q4_0;
    case Encoding::q4_1: return blocks::to_q4_1;
    case Encoding::q5_0: return blocks::to_q5_0;
    case Encoding::q5_1: return blocks::to_q5_1;
    case Encoding::q8_0: return blocks::to_q8_0;
    case Encoding::q2_k: return blocks::to_q2_k;
    case Encoding::q3_k: return blocks::to_q3_k;
    case Encoding::q4_k: return blocks::to_q4_k;
    case Encoding::q5_k: return blocks::to_q5_k;
    case Encoding::q6_k: return blocks::to_q6_k;
    case Encoding::iq4_nl: return blocks::to_iq4_nl;
    case Encoding::iq4_xs: return blocks::to_iq4_xs;
    case Encoding::tq1_0: return blocks::to_tq1_0;
    case Encoding::tq2_0: return blocks::to_tq2_0;
    default: return nullptr;
  }
}

bool encode(Encoding encoding, std::span<const float> from, std::byte* to) {
  const BlockEncoder one = block_encoder(encoding);
  if (!one) return false;
  const auto elements = static_cast<std::size_t>(block_elements(encoding));
  const auto bytes = static_cast<std::size_t>(block_bytes(encoding));
  assert(from.size() % elements == 0);
  for (std::size_t i = 0; i < from.size() / elements; ++i) one(from.data() + i * elements, to + i * bytes);
  return true;
}

}  // namespace modelc
