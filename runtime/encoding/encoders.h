// The encoder of each packed encoding. Private to the folder: others ask encode.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace modelc::blocks {

// encode_q.cpp: equal to the bit with the package `gguf`.
void to_q4_0(const float* x, std::byte* b);
void to_q4_1(const float* x, std::byte* b);
void to_q5_0(const float* x, std::byte* b);
void to_q5_1(const float* x, std::byte* b);
void to_q8_0(const float* x, std::byte* b);
void to_tq1_0(const float* x, std::byte* b);
void to_tq2_0(const float* x, std::byte* b);
void to_mxfp4(const float* x, std::byte* b);
// encode_k.cpp
void to_q2_k(const float* x, std::byte* b);
void to_q3_k(const float* x, std::byte* b);
void to_q4_k(const float* x, std::byte* b);
void to_q5_k(const float* x, std::byte* b);
void to_q6_k(const float* x, std::byte* b);
// encode_iq.cpp
void to_iq4_nl(const float* x, std::byte* b);
void to_iq4_xs(const float* x, std::byte* b);

inline void put_u16(std::byte* p, std::uint16_t v) {
  p[0] = static_cast<std::byte>(v);
  p[1] = static_cast<std::byte>(v >> 8);
}

}  // namespace modelc::blocks
