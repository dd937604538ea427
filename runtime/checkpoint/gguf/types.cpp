#include "runtime/checkpoint/gguf/types.h"

namespace modelc {
namespace {

struct TypeRow {
  std::uint32_t number;
  Encoding encoding;
  int file_type;  // -1: none
};
constexpr TypeRow rows[] = {
    {0, Encoding::f32, 0},       {1, Encoding::f16, 1},      {2, Encoding::q4_0, 2},      {3, Encoding::q4_1, 3},
    {6, Encoding::q5_0, 8},      {7, Encoding::q5_1, 9},     {8, Encoding::q8_0, 7},      {9, Encoding::q8_1, -1},
    {10, Encoding::q2_k, 10},    {11, Encoding::q3_k, 12},   {12, Encoding::q4_k, 15},    {13, Encoding::q5_k, 17},
    {14, Encoding::q6_k, 18},    {15, Encoding::q8_k, -1},   {16, Encoding::iq2_xxs, 19}, {17, Encoding::iq2_xs, 20},
    {18, Encoding::iq3_xxs, 23}, {19, Encoding::iq1_s, 24},  {20, Encoding::iq4_nl, 25},  {21, Encoding::iq3_s, 26},
    {22, Encoding::iq2_s, 28},   {23, Encoding::iq4_xs, 30}, {24, Encoding::i8, -1},      {25, Encoding::i16, -1},
    {26, Encoding::i32, -1},     {27, Encoding::i64, -1},    {28, Encoding::f64, -1},     {29, Encoding::iq1_m, 31},
    {30, Encoding::bf16, 32},    {34, Encoding::tq1_0, 36},  {35, Encoding::tq2_0, 37},   {39, Encoding::mxfp4, 38},
    {40, Encoding::nvfp4, 39},
};

struct NameRow {
  std::uint32_t number;
  std::string_view name;
};
constexpr NameRow removed[] = {
    {4, "Q4_2"},      {5, "Q4_3"},        {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"},
};
constexpr NameRow undecoded[] = {{41, "Q1_0"}};

}  // namespace

std::optional<Encoding> encoding_from_gguf(std::uint32_t type) {
  for (const TypeRow& row : rows)
    if (row.number == type) return row.encoding;
  return std::nullopt;
}

std::optional<std::uint32_t> gguf_type(Encoding encoding) {
  for (const TypeRow& row : rows)
    if (row.encoding == encoding) return row.number;
  return std::nullopt;
}

std::string_view removed_gguf_type(std::uint32_t type) {
  for (const NameRow& row : removed)
    if (row.number == type) return row.name;
  return {};
}

std::string_view undecoded_gguf_type(std::uint32_t type) {
  for (const NameRow& row : undecoded)
    if (row.number == type) return row.name;
  return {};
}

std::optional<std::uint32_t> gguf_file_type(Encoding encoding) {
  for (const TypeRow& row : rows)
    if (row.encoding == encoding && row.file_type >= 0) return static_cast<std::uint32_t>(row.file_type);
  return std::nullopt;
}

}  // namespace modelc
