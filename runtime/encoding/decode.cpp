#include "runtime/encoding/decode.h"

#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "runtime/encoding/blocks.h"
#include "runtime/encoding/convert.h"

namespace modelc {
namespace {

void from_f64(const std::byte* b, float* to) { *to = static_cast<float>(std::bit_cast<double>(load_u64(b))); }
void from_f32(const std::byte* b, float* to) { *to = std::bit_cast<float>(load_u32(b)); }
void from_f16(const std::byte* b, float* to) { *to = f32_from_f16(load_u16(b)); }
void from_bf16(const std::byte* b, float* to) { *to = f32_from_bf16(load_u16(b)); }

}  // namespace

BlockDecoder block_decoder(Encoding encoding) {
  switch (encoding) {
    case Encoding::f64: return from_f64;
    case Encoding::f32: return from_f32;
    case Encoding::f16: return from_f16;
    case Encoding::bf16: return from_bf16;
    case Encoding::f8_e4m3: return blocks::f8_e4m3;
    case Encoding::f8_e5m2: return blocks::f8_e5m2;
    case Encoding::f8_e8m0: return blocks::f8_e8m0;
    case Encoding::f4_e2m1: return blocks::f4_e2m1;
    case Encoding::f6_e2m3: return blocks::f6_e2m3;
    case Encoding::f6_e3m2: return blocks::f6_e3m2;
    case Encoding::mxfp4: return blocks::mxfp4;
    case Encoding::nvfp4: return blocks::nvfp4;
    case Encoding::q4_0: return blocks::q4_0;
    case Encoding::q4_1: return blocks::q4_1;
    case Encoding::q5_0: return blocks::q5_0;
    case Encoding::q5_1: return blocks::q5_1;
    case Encoding::q8_0: return blocks::q8_0;
    case Encoding::q8_1: return blocks::q8_1;
    case Encoding::q2_k: return blocks::q2_k;
    case Encoding::q3_k: return blocks::q3_k;
    case Encoding::q4_k: return blocks::q4_k;
    case Encoding::q5_k: return blocks::q5_k;
    case Encoding::q6_k: return blocks::q6_k;
    case Encoding::q8_k: return blocks::q8_k;
    case Encoding::iq1_s: return blocks::iq1_s;
    case Encoding::iq1_m: return blocks::iq1_m;
    case Encoding::iq2_xxs: return blocks::iq2_xxs;
    case Encoding::iq2_xs: return blocks::iq2_xs;
    case Encoding::iq2_s: return blocks::iq2_s;
    case Encoding::iq3_xxs: return blocks::iq3_xxs;
    case Encoding::iq3_s: return blocks::iq3_s;
    case Encoding::iq4_nl: return blocks::iq4_nl;
    case Encoding::iq4_xs: return blocks::iq4_xs;
    case Encoding::tq1_0: return blocks::tq1_0;
    case Encoding::tq2_0: return blocks::tq2_0;
    default: return nullptr;
  }
}

bool decode(Encoding encoding, const std::byte* from, std::span<float> to) {
  const BlockDecoder one = block_decoder(encoding);
  if (!one) return false;
  // The plain types have loops of their own, which compilers vectorise.
  if (const auto type = dtype_of(encoding); type && convert_to_f32(*type, from, to)) return true;
  const auto elements = static_cast<std::size_t>(block_elements(encoding));
  const auto bytes = static_cast<std::size_t>(block_bytes(encoding));
  assert(to.size() % elements == 0);
  for (std::size_t i = 0; i < to.size() / elements; ++i) one(from + i * bytes, to.data() + i * elements);
  return true;
}

}  // namespace modelc
