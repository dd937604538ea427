#include "runtime/main/profile.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "runtime/base/strings.h"

namespace modelc::main_program {
namespace {

bool is_number(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "model.layers.3.mlp" → "model.layers.*.mlp"
std::string any_layer(const std::string& path) {
  std::string out;
  for (std::string_view part : split(path, '.')) {
    if (!out.empty()) out += '.';
    out += is_number(part) ? std::string_view("*") : part;
  }
  return out;
}

// "model.layers.3.mlp" → "model.layers.3"; of others the operation's own name.
std::string part_of(const Operation& o) {
  std::string out;
  for (std::string_view part : split(o.module, '.')) {
    if (!out.empty()) out += '.';
    out += part;
    if (is_number(part)) return out;
  }
  if (o.of.empty()) return out.empty() ? o.kind : out;
  return out + (out.empty() ? "" : ".") + o.of;
}

// Bytes that could end the text node, or that XML does not have, never pass.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : printable(text, 4096)) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

template <class... Args> std::string text_of(const char* format, Args... args) {
  char buffer[256];
  std::snprintf(buffer, sizeof(buffer), format, args...);
  return buffer;
}

std::string time_text(double seconds) {
  if (seconds >= 1) return text_of("%.2f s", seconds);
  if (seconds >= 1e-3) return text_of(seconds >= 0.1 ? "%.0f ms" : seconds >= 0.01 ? "%.1f ms" : "%.2f ms", seconds * 1e3);
  return text_of("%.1f µs", seconds * 1e6);
}

// The end of a path says more than its beginning.
std::string shortened(const std::string& label, std::size_t most) {
  std::size_t characters = 0;
  for (const char c : label) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  if (characters <= most) return label;
  std::size_t at = label.size();
  for (std::size_t kept = 0; at > 0 && kept < most - 1;) kept += (static_cast<unsigned char>(label[--at]) & 0xC0) != 0x80;
  return "…" + label.substr(at);
}

struct Colour {
  const char* name;
  const char* fill;
};
Colour colour_of(const std::string& kind) {
  if (kind == "linear" || kind == "experts" || kind == "conv") return {"products", "#3b6fb6"};
  if (kind == "attend" || kind == "append") return {"attention", "#d9822b"};
  if (kind == "norm" || kind == "add, norm") return {"norms", "#4c9a62"};
  if (kind == "take" || kind == "take rows") return {"rows taken", "#8a6bbe"};
  return {"elementwise and other", "#8b929c"};
}

constexpr int width = 1080, margin = 28, label_width = 380, bar_left = margin + label_width + 12, bar_width = 340, row_height = 24;

class Picture {
 public:
  void text(double x, double y, const std::string& content, const char* css, const char* anchor = "start") {
    body_ += text_of("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, css, anchor) + escaped(content) + "</text>\n";
  }
  void bar(double x, double y, double w, double h, const char* fill, const std::string& tip) {
    body_ += text_of("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.2f\" rx=\"2\" fill=\"%s\"><title>", x, y, std::max(w, 0.75),
                     std::max(h, 0.75), fill) +
             escaped(tip) + "</title></rect>\n";
  }
  void line(double x1, double y1, double x2, double y2) {
    body_ += text_of("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#c9ced6\"/>\n", x1, y1, x2, y2);
  }
  std::string finish(int height) const {
    return text_of("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", width, height, width,
                   height) +
           "<style>text{font-family:'DejaVu Sans',Verdana,sans-serif;font-size:13px;fill:#22262b}"
           ".h{font-size:20px;font-weight:bold}.t{font-size:16px;font-weight:bold}.s{fill:#5b6470}.n{font-size:12px;fill:#5b6470}"
           "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
           body_ + "</svg>\n";
  }

 private:
  std::string body_;
};

// "310 GFLOP/s, 0.88 of the limit", whichever of the two limits is nearer.
std::string speed_text(const ProfileRow& r, const ProfileLimits& limits) {
  if (r.seconds <= 0) return "";
  const double flops = r.flops / r.seconds, bytes = r.bytes / r.seconds;
  const double of_flops = limits.flops_per_second > 0 ? flops / limits.flops_per_second : 0;
  const double of_bytes = limits.bytes_per_second > 0 ? bytes / limits.bytes_per_second : 0;
  if (flops <= 0 && bytes <= 0) return "";
  if (of_flops <= 0 && of_bytes <= 0) return text_of("%.3g GFLOP/s", flops / 1e9);
  return of_flops >= of_bytes ? text_of("%.3g GFLOP/s, %.2f of the limit", flops / 1e9, of_flops)
                              : text_of("%.3g GB/s, %.2f of the limit", bytes / 1e9, of_bytes);
}

int panel(Picture& to, int y, const Profile& p, const ProfileLimits& limits) {
  const double rate = p.seconds > 0 ? static_cast<double>(p.tokens) / p.seconds : 0;
  to.text(margin, y += 24, p.title, "t");
  to.text(width - margin, y, text_of("%s in all operations, %.4g tokens/s", time_text(p.seconds).c_str(), rate), "s", "end");
  y += 14;
  constexpr std::size_t most = 16;
  std::vector<ProfileRow> rows = p.rows;
  if (rows.size() > most) {
    ProfileRow rest;
    rest.module = counted(rows.size() - (most - 1), "further operation");
    for (std::size_t i = most - 1; i < rows.size(); ++i) rest.seconds += rows[i].seconds, rest.calls += rows[i].calls;
    rows.resize(most - 1);
    rows.push_back(rest);
  }
  double longest = 0;
  std::map<std::string, int> times;
  for (const ProfileRow& r : rows) {
    longest = std::max(longest, r.seconds);
    ++times[r.label()];
  }
  for (const ProfileRow& r : rows) {
    const double share = p.seconds > 0 ? r.seconds / p.seconds : 0;
    const double w = longest > 0 ? bar_width * r.seconds / longest : 0;
    const std::string speed = speed_text(r, limits);
    to.text(margin + label_width, y + 16, shortened(times[r.label()] > 1 ? r.label() + " (" + r.kind + ")" : r.label(), 50), "l", "end");
    to.bar(bar_left, y + 4, w, row_height - 8, colour_of(r.kind).fill,
           r.label() + ": " + r.kind + ", " + counted(static_cast<std::uint64_t>(r.calls), "call") + ", " + time_text(r.seconds));
    to.text(bar_left + w + 8, y + 16,
            text_of("%s  %.1f %%", time_text(r.seconds).c_str(), share * 100) + (speed.empty() ? "" : "  ·  " + speed), "n");
    y += row_height;
  }
  // Layer by layer, in order: an odd one shows at a glance.
  if (p.layers.size() > 1) {
    y += 26;
    to.text(margin, y, "by layer, in order", "s");
    double tallest = 0;
    for (const ProfilePart& l : p.layers) tallest = std::max(tallest, l.seconds);
    constexpr double height = 70;
    const double base = y + 10 + height, left = margin + 76, step = (width - margin - left) / static_cast<double>(p.layers.size());
    to.text(left - 8, base - height + 5, time_text(tallest), "n", "end");
    to.text(left - 8, base + 4, "0", "n", "end");
    to.line(left, base, width - margin, base);
    for (std::size_t i = 0; i < p.layers.size(); ++i) {
      const double h = tallest > 0 ? height * p.layers[i].seconds / tallest : 0;
      to.bar(left + step * static_cast<double>(i) + 1, base - h, std::min(step - 2, 40.0), h, "#6f8fbf",
             p.layers[i].name + ": " + time_text(p.layers[i].seconds));
    }
    to.text(left, base + 18, p.layers.front().name, "n");
    to.text(width - margin, base + 18, p.layers.back().name, "n", "end");
    y = static_cast<int>(base) + 24;
  }
  return y + 18;
}

}  // namespace

std::string ProfileRow::label() const {
  if (of.empty()) return kind.empty() ? module : module + (module.empty() ? "" : " ") + kind;
  return module + (module.empty() ? "" : ".") + of;
}

Profile make_profile(std::string title, std::int64_t tokens, const std::vector<Operation>& operations) {
  Profile p;
  p.title = std::move(title);
  p.tokens = tokens;
  std::map<std::pair<std::string, std::string>, ProfileRow> rows;
  std::map<std::string, std::size_t> parts;
  for (const Operation& o : operations) {
    ProfileRow& r = rows[{any_layer(o.module), o.of + "\n" + o.kind}];
    r.module = any_layer(o.module);
    r.of = o.of;
    r.kind = o.kind;
    ++r.calls;
    r.seconds += o.seconds;
    r.flops += o.flops;
    r.bytes += o.bytes;
    p.seconds += o.seconds;
    p.flops += o.flops;
    p.bytes += o.bytes;
    const auto [it, fresh] = parts.insert({part_of(o), p.layers.size()});
    if (fresh) p.layers.push_back({it->first});
    p.layers[it->second].seconds += o.seconds;
  }
  for (auto& [key, row] : rows) p.rows.push_back(std::move(row));
  std::stable_sort(p.rows.begin(), p.rows.end(), [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return p;
}

std::string profile_svg(const std::string& heading, const std::vector<Profile>& profiles, const ProfileLimits& limits) {
  Picture picture;
  int y = 44;
  picture.text(margin, y, heading, "h");
  y += 22;
  std::string yardsticks = "Time of each operation, summed over the layers.";
  if (limits.flops_per_second > 0 && limits.bytes_per_second > 0)
    yardsticks += text_of(" Limits of this machine in the same run: %.3g GB/s read, %.3g GFLOP/s.", limits.bytes_per_second / 1e9,
                          limits.flops_per_second / 1e9);
  picture.text(margin, y, yardsticks, "s");
  y += 14;
  double x = margin;
  for (const char* kind : {"linear", "attend", "norm", "take", "map"}) {
    const Colour c = colour_of(kind);
    picture.bar(x, y, 12, 12, c.fill, c.name);
    picture.text(x + 18, y + 11, c.name, "n");
    x += 18 + 8.0 * static_cast<double>(std::string_view(c.name).size()) + 24;
  }
  y += 26;
  for (const Profile& p : profiles) y = panel(picture, y, p, limits);
  return picture.finish(y + 8);
}

}  // namespace modelc::main_program
