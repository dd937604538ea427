#include "runtime/generate/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/strings.h"

namespace modelc {

Difference compare(const std::string& name, std::span<const float> expected, std::span<const float> found) {
  Difference d;
  d.name = name;
  d.values = static_cast<std::int64_t>(expected.size());
  if (expected.size() != found.size()) {
    d.max_abs = d.mean_abs = std::numeric_limits<double>::infinity();
    return d;
  }
  double sum = 0, ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = expected[i], b = found[i];
    double diff = std::abs(a - b);
    if (std::isnan(diff)) diff = (std::isnan(a) && std::isnan(b)) || a == b ? 0 : std::numeric_limits<double>::infinity();
    if (diff > d.max_abs || i == 0) {
      d.max_abs = diff;
      d.worst = static_cast<std::int64_t>(i);
      d.expected = a;
      d.found = b;
    }
    sum += diff;
    ab += a * b, aa += a * a, bb += b * b;
  }
  if (!expected.empty()) d.mean_abs = sum / static_cast<double>(expected.size());
  d.cosine = aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : (aa == bb ? 1 : 0);
  return d;
}

namespace {

double log_sum_exp(std::span<const float> row) {
  double largest = -std::numeric_limits<double>::infinity();
  for (float v : row) largest = std::max<double>(largest, v);
  double sum = 0;
  for (float v : row) sum += std::exp(v - largest);
  return largest + std::log(sum);
}

}  // namespace

void compare_logits(Difference& d, std::span<const float> expected, std::span<const float> found, std::int64_t classes) {
  const auto n = static_cast<std::size_t>(classes);
  if (n == 0 || expected.size() != found.size() || expected.size() % n != 0 || expected.empty()) return;
  double sum = 0;
  std::vector<double> all;
  std::size_t same = 0;
  const std::size_t rows = expected.size() / n;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto a = expected.subspan(r * n, n), b = found.subspan(r * n, n);
    const double la = log_sum_exp(a), lb = log_sum_exp(b);
    double kl = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double p = a[i] - la, q = b[i] - lb;
      kl += std::exp(p) * (p - q);
    }
    if (std::isnan(kl)) kl = std::numeric_limits<double>::infinity();
    sum += kl;
    all.push_back(kl);
    same += std::max_element(a.begin(), a.end()) - a.begin() == std::max_element(b.begin(), b.end()) - b.begin() ? 1 : 0;
  }
  std::sort(all.begin(), all.end());
  d.max_kl = all.back();
  d.kl_99 = all[(rows * 99 + 99) / 100 - 1];               // the smallest that 99 % of the rows do not pass
  d.mean_kl = sum / static_cast<double>(rows);
  d.top1 = static_cast<double>(same) / static_cast<double>(rows);
}

namespace {

std::string number(double v) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, v != 0 && (v < 1e-3 || v >= 1e4) ? "%.2e" : "%.5f", v);
  return buffer;
}

}  // namespace

std::string report_text(const VerifyReport& report, const VerifyOptions& options) {
  std::size_t width = 6;
  for (const Difference& d : report.differences) width = std::max(width, d.name.size());
  std::string s = "compared " + counted(static_cast<std::uint64_t>(report.sequences), "sequence") + ", " +
                  counted(static_cast<std::uint64_t>(report.rows), "position") + "\n";
  const auto pad = [](const std::string& t, std::size_t w) { return t.size() < w ? t + std::string(w - t.size(), ' ') : t; };
  s += pad("", width) + "  max abs    mean abs   cosine\n";
  for (const Difference& d : report.differences) {
    s += pad(d.name, width) + "  " + pad(number(d.max_abs), 9) + "  " + pad(number(d.mean_abs), 9) + "  " + number(d.cosine);
    if (d.max_kl)
      s += "  KL max " + number(*d.max_kl) + ", 99 % " + number(*d.kl_99) + ", mean " + number(*d.mean_kl) + "; same best token " +
           number(*d.top1 * 100) + " %";
    if (!d.within)
      s += "  <-- differs at element " + std::to_string(d.worst) + ": expected " + shortest(d.expected) + ", found " + shortest(d.found);
    s += "\n";
  }
  if (report.first_stage) s += "first stage that differs: " + *report.first_stage + "\n";
  s += report.passed ? "passed: " : "FAILED: ";
  s += "every tensor within " + shortest(options.within);
  if (options.within_kl) s += ", KL of logits within " + shortest(*options.within_kl);
  if (options.within_kl_99) s += ", of 99 % within " + shortest(*options.within_kl_99);
  if (options.within_mean_kl) s += ", its mean within " + shortest(*options.within_mean_kl);
  s += "\n";
  return s;
}

Json report_json(const VerifyReport& report) {
  JsonObject root;
  root.set("passed", Json(report.passed));
  root.set("sequences", Json(report.sequences));
  root.set("positions", Json(report.rows));
  if (report.first_stage) root.set("first_stage", Json(*report.first_stage));
  JsonArray list;
  for (const Difference& d : report.differences) {
    JsonObject o;
    o.set("name", Json(d.name));
    o.set("output", Json(d.output));
    o.set("within", Json(d.within));
    o.set("max_abs", Json(d.max_abs));
    o.set("mean_abs", Json(d.mean_abs));
    o.set("cosine", Json(d.cosine));
    if (d.max_kl) {
      o.set("max_kl", Json(*d.max_kl));
      o.set("kl_99", Json(*d.kl_99));
      o.set("mean_kl", Json(*d.mean_kl));
      o.set("top1", Json(*d.top1));
    }
    list.push_back(Json(std::move(o)));
  }
  root.set("tensors", Json(std::move(list)));
  return Json(std::move(root));
}

}  // namespace modelc
