// Of every construct a text with it and the same without, and what comes out differs. The construct stands between « and »;
// behind ¦ stands what takes its place without it.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <span>
#include <string>

namespace modelc::sema::test {

struct Case {
  std::string construct;
  std::string text;                              // around(fields, members, before)
  std::string config;
};

struct Outcome {
  bool good;                                     // a model came out
  std::string text;                              // all that can be seen of it, or the messages
};

inline std::string variant(const std::string& marked, bool with) {
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t open = marked.find("«", at);
    if (open == std::string::npos) return out + marked.substr(at);
    const std::size_t close = marked.find("»", open);
    REQUIRE(close != std::string::npos);
    const std::string inside = marked.substr(open + 2, close - open - 2);
    const std::size_t bar = inside.find("¦");
    out += marked.substr(at, open - at);
    if (with) out += inside.substr(0, bar);
    else if (bar != std::string::npos) out += inside.substr(bar + 2);
    at = close + 2;
  }
}

inline void check_constructs(std::span<const Case> cases,
                             const std::function<Outcome(const std::string& text, const std::string& config)>& outcome) {
  for (const Case& c : cases) {
    CAPTURE(c.construct);
    REQUIRE(c.text.find("«") != std::string::npos);
    const Outcome with = outcome(variant(c.text, true), c.config), without = outcome(variant(c.text, false), c.config);
    CHECK(with.text != without.text);
    // One of the two is a model, so the difference is the construct's and not a mistake in the case.
    if (!with.good && !without.good) FAIL_CHECK("neither is a model:\n", with.text, "\n", without.text);
  }
}

}  // namespace modelc::sema::test
