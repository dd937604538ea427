// Writes the value tree as JSON text.
#include <cmath>

#include "runtime/base/json.h"
#include "runtime/base/strings.h"

namespace modelc {
namespace {

void write_string(std::string& out, std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      const std::size_t n = utf8_length(text.substr(i));
      if (n == 0) {
        out += "\xef\xbf\xbd";
        ++i;
      } else {
        out.append(text, i, n);
        i += n;
      }
      continue;
    }
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (byte < 0x20 || byte == 0x7f) {
          out += "\\u00";
          out += digits[byte >> 4];
          out += digits[byte & 15];
        } else {
          out += c;
        }
    }
    ++i;
  }
  out += '"';
}

// A double keeps a sign of being one ('.', 'e', a name), so that it is read back as a double.
void write_double(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "NaN";
  } else if (std::isinf(v)) {
    out += v < 0 ? "-Infinity" : "Infinity";
  } else {
    const std::string text = shortest(v);
    out += text;
    if (text.find_first_of(".e") == std::string::npos) out += ".0";
  }
}

class Writer {
 public:
  Writer(std::string& out, int indent) : out_(out), indent_(indent) {}

  void value(const Json& v, int level) {
    switch (v.kind()) {
      case Json::Kind::null: out_ += "null"; break;
      case Json::Kind::boolean: out_ += *v.as_bool() ? "true" : "false"; break;
      case Json::Kind::int64: out_ += std::to_string(*v.as_int()); break;
      case Json::Kind::uint64: out_ += std::to_string(*v.as_uint()); break;
      case Json::Kind::number: write_double(out_, *v.as_double()); break;
      case Json::Kind::string: write_string(out_, *v.as_string()); break;
      case Json::Kind::array: {
        const JsonArray& items = *v.as_array();
        out_ += '[';
        for (std::size_t i = 0; i < items.size(); ++i) {
          if (i) out_ += ',';
          line(level + 1);
          value(items[i], level + 1);
        }
        if (!items.empty()) line(level);
        out_ += ']';
        break;
      }
      case Json::Kind::object: {
        const JsonObject& members = *v.as_object();
        out_ += '{';
        for (std::size_t i = 0; i < members.size(); ++i) {
          if (i) out_ += ',';
          line(level + 1);
          write_string(out_, members[i].key);
          out_ += indent_ < 0 ? ":" : ": ";
          value(members[i].value, level + 1);
        }
        if (!members.empty()) line(level);
        out_ += '}';
        break;
      }
    }
  }

 private:
  void line(int level) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(level) * static_cast<std::size_t>(indent_), ' ');
  }

  std::string& out_;
  int indent_;
};

}  // namespace

std::string dump(const Json& value, int indent) {
  std::string out;
  Writer(out, indent).value(value, 0);
  return out;
}

std::string json_quote(std::string_view text) {
  std::string out;
  write_string(out, text);
  return out;
}

}  // namespace modelc
