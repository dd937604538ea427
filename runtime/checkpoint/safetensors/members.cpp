#include "runtime/checkpoint/safetensors/members.h"

#include <cstdint>

#include "runtime/base/strings.h"

namespace modelc {
namespace {

class Walker {
 public:
  Walker(std::string_view text, const std::string& name, std::size_t base, int max_depth)
      : text_(text), name_(name), base_(base), max_depth_(max_depth) {}

  Status walk(const std::function<bool(const JsonText&, const JsonText&)>& each) {
    space();
    if (!take('{')) return refuse("an object must begin here");
    space();
    if (take('}')) return end();
    while (true) {
      const std::size_t key = at_;
      if (at_ == text_.size() || text_[at_] != '"') return refuse("a key in quotation marks must stand here");
      if (!string()) return refuse("a string is not closed: the text is cut short", key);
      const JsonText key_text = {text_.substr(key, at_ - key), key};
      space();
      if (!take(':')) return refuse("a colon must stand here");
      space();
      const std::size_t value = at_;
      if (Status s = skip_value(); !s) return s;
      if (!each(key_text, {text_.substr(value, at_ - value), value})) return {};
      space();
      if (take('}')) return end();
      if (!take(',')) return refuse("a comma or the closing bracket must stand here");
      space();
    }
  }

 private:
  Status refuse(std::string_view what) const { return refuse(what, at_); }
  Status refuse(std::string_view what, std::size_t at) const { return refuse("json-syntax", what, at); }
  Status refuse(const char* kind, std::string_view what, std::size_t at) const {
    return Error{kind, name_ + ": byte " + grouped(static_cast<std::uint64_t>(base_ + at)) + ": " + std::string(what), {}, {}};
  }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
  }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Status end() {
    space();
    return at_ == text_.size() ? Status() : refuse("more text follows the object");
  }
  // Past the string that begins here.
  bool string() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') return ++at_, true;
      if (text_[at_] == '\\') ++at_;
    }
    at_ = text_.size();
    return false;
  }
  // Past the value that begins here.
  Status skip_value() {
    const std::size_t begin = at_;
    int depth = 1;                                         // of the object itself
    while (at_ < text_.size()) {
      switch (text_[at_]) {
        case '"':
          if (const std::size_t open = at_; !string()) return refuse("a string is not closed: the text is cut short", open);
          if (depth == 1) return {};
          continue;
        case '{':
        case '[':
          if (++depth > max_depth_)
            return refuse("json-depth", "arrays and objects are nested deeper than " + std::to_string(max_depth_), at_);
          break;
        case '}':
        case ']':
          if (depth == 1) return begin == at_ ? refuse("a value is missing here") : Status();
          if (--depth == 1) return ++at_, Status();
          break;
        case ',':
        case ' ':
        case '\t':
        case '\n':
        case '\r':
          if (depth == 1) return begin == at_ ? refuse("a value is missing here") : Status();
          break;
        default: break;
      }
      ++at_;
    }
    return refuse("the text does not end with the bracket that closes this: it is cut short", begin);
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t base_;
  int max_depth_;
  std::size_t at_ = 0;
};

}  // namespace

Status each_member(std::string_view text, const std::string& name, std::size_t base, int max_depth,
                   const std::function<bool(const JsonText&, const JsonText&)>& each) {
  return Walker(text, name, base, max_depth).walk(each);
}

}  // namespace modelc
