// The alphabet of byte-level vocabularies: each of the 256 bytes is written as one printable character, so that tokens
// are text. Bytes that are printable in Latin-1 (but not the soft hyphen) stand for themselves; the others, in order,
// are U+0100, U+0101, ...: a space is U+0120, "Ġ".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace modelc {

struct ByteAlphabet {
  struct Spelling {
    char text[2];
    std::uint8_t size;
  };
  std::array<Spelling, 256> spelling{};    // by byte
  std::array<std::int16_t, 0x144> byte{};  // by character; -1 outside the alphabet

  static constexpr bool stands_for_itself(unsigned b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  }

  constexpr ByteAlphabet() {
    for (auto& b : byte) b = -1;
    unsigned next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const unsigned c = stands_for_itself(b) ? b : next++;
      byte[c] = static_cast<std::int16_t>(b);
      if (c < 0x80) spelling[b] = {{static_cast<char>(c), 0}, 1};
      else spelling[b] = {{static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))}, 2};
    }
  }

  void append(std::string& out, std::string_view bytes) const {
    for (const char c : bytes) {
      const Spelling& s = spelling[static_cast<unsigned char>(c)];
      out.append(s.text, s.size);
    }
  }
};

inline constexpr ByteAlphabet byte_alphabet;

}  // namespace modelc
