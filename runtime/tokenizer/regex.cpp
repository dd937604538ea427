#include "runtime/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdlib>

#include "runtime/base/strings.h"
#include "runtime/tokenizer/utf8.h"

namespace modelc {

namespace {

template <auto release> struct Release {
  template <class T> void operator()(T* p) const { release(p); }
};
using CodePointer = std::unique_ptr<pcre2_code, Release<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Release<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Release<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Release<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Release<pcre2_jit_stack_free>>;

std::string message_of(int code) {
  char text[256] = {};
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof text);
  return text;
}

// "14.0.0": the version of Unicode that the library knows.
int unicode_version() {
  char text[64] = {};
  if (pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, nullptr) > static_cast<int>(sizeof text)) return 0;
  pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, text);
  return std::atoi(text);
}

constexpr std::size_t jit_stack_start = 64u << 10, jit_stack_most = 64u << 20;

}  // namespace

struct Regex::Code {
  CodePointer code;
  std::string pattern;  // as the file has it
};

Result<Regex> Regex::compile(std::string_view pattern) {
  Result<std::string> translated = translate_pattern(pattern, unicode_version() < 16);
  if (!translated) return translated.error();
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (!context) return Error{"tokenizer-regex", "no memory for a regular expression", {}, {}};
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_bsr(context.get(), PCRE2_BSR_UNICODE);
  int code = 0;
  PCRE2_SIZE offset = 0;
  CodePointer compiled(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE, &code, &offset, context.get()));
  if (!compiled)
    return Error{"tokenizer-regex",
                 "regular expression " + quote(pattern) + ": " + message_of(code),
                 {"translated for PCRE2: " + quote(std::string_view(*translated).substr(0, offset)) + " and then the error"},
                 {}};
  // Where there is no JIT for this processor, the interpreter does it.
  pcre2_jit_compile(compiled.get(), PCRE2_JIT_COMPLETE);
  return Regex(std::make_shared<const Code>(Code{std::move(compiled), std::string(pattern)}));
}

Status Regex::find_all(std::string_view text, std::vector<Match>& matches) const {
  const MatchData data(pcre2_match_data_create(1, nullptr));
  if (!data) return Error{"tokenizer-regex", "no memory for a regular expression", {}, {}};
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  MatchContext context;
  JitStack stack;
  std::uint32_t options = PCRE2_NO_UTF_CHECK;
  bool any = false;  // a match before this one, ending at last_end
  std::size_t at = 0, last_end = 0;
  while (at <= text.size()) {
    const int code = pcre2_match(code_->code.get(), subject, text.size(), at, options, data.get(), context.get());
    if (code == PCRE2_ERROR_NOMATCH) break;
    if (code == PCRE2_ERROR_JIT_STACKLIMIT) {
      // First a larger stack, then the interpreter, which takes its memory from the heap.
      if (!stack) {
        context.reset(pcre2_match_context_create(nullptr));
        stack.reset(pcre2_jit_stack_create(jit_stack_start, jit_stack_most, nullptr));
        if (context && stack) {
          pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
          continue;
        }
      }
      if ((options & PCRE2_NO_JIT) == 0) {
        options |= PCRE2_NO_JIT;
        continue;
      }
    }
    if (code < 0)
      return Error{"tokenizer-regex",
                   "regular expression " + quote(code_->pattern) + " failed at byte " + std::to_string(at) + " of a text of " +
                       counted(text.size(), "byte") + ": " + message_of(code),
                   {},
                   {}};
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    if (ends[0] == ends[1] && any && ends[1] == last_end) {
      if (at == text.size()) break;
      at += utf8::next(text, at).size;
      continue;
    }
    matches.push_back({ends[0], ends[1]});
    any = true;
    at = last_end = ends[1];
  }
  return {};
}

}  // namespace modelc
