// The decoder of each packed encoding, one file for each family; the layouts stand at the top of the files. Private to
// the folder: others ask decode.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace modelc::blocks {

using Byte = std::byte;

// small_floats.cpp
void f8_e4m3(const Byte* b, float* to);
void f8_e5m2(const Byte* b, float* to);
void f8_e8m0(const Byte* b, float* to);
void f4_e2m1(const Byte* b, float* to);
void f6_e2m3(const Byte* b, float* to);
void f6_e3m2(const Byte* b, float* to);
// fp4.cpp
void mxfp4(const Byte* b, float* to);
void nvfp4(const Byte* b, float* to);
// q.cpp
void q4_0(const Byte* b, float* to);
void q4_1(const Byte* b, float* to);
void q5_0(const Byte* b, float* to);
void q5_1(const Byte* b, float* to);
void q8_0(const Byte* b, float* to);
void q8_1(const Byte* b, float* to);
// k.cpp
void q2_k(const Byte* b, float* to);
void q3_k(const Byte* b, float* to);
void q4_k(const Byte* b, float* to);
void q5_k(const Byte* b, float* to);
void q6_k(const Byte* b, float* to);
void q8_k(const Byte* b, float* to);
// iq.cpp
void iq1_s(const Byte* b, float* to);
void iq1_m(const Byte* b, float* to);
void iq2_xxs(const Byte* b, float* to);
void iq2_xs(const Byte* b, float* to);
void iq2_s(const Byte* b, float* to);
void iq3_xxs(const Byte* b, float* to);
void iq3_s(const Byte* b, float* to);
void iq4_nl(const Byte* b, float* to);
void iq4_xs(const Byte* b, float* to);
// ternary.cpp
void tq1_0(const Byte* b, float* to);
void tq2_0(const Byte* b, float* to);

// Bytes as numbers.
inline unsigned u8(const Byte* p) { return std::to_integer<unsigned>(*p); }
inline int i8(const Byte* p) { return static_cast<std::int8_t>(*p); }
inline unsigned u16(const Byte* p) { return u8(p) | u8(p + 1) << 8; }
inline std::uint32_t u32(const Byte* p) { return u16(p) | std::uint32_t{u16(p + 2)} << 16; }

}  // namespace modelc::blocks
