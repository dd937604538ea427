#include "runtime/checkpoint/adapter_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "runtime/base/strings.h"

namespace modelc {
namespace {

constexpr std::int64_t max_rank = 1 << 16;

// Keys that say nothing about what the merged weights are.
constexpr std::array<std::string_view, 18> ignored = {
    "auto_mapping",    "base_model_name_or_path", "corda_config",   "ensure_weight_tying", "eva_config",
    "exclude_modules", "inference_mode",          "layers_pattern", "layers_to_transform", "loftq_config",
    "lora_dropout",    "megatron_config",         "megatron_core",  "peft_version",        "qalora_group_size",
    "revision",        "runtime_config",          "task_type"};
// Keys whose other values change the weights in ways that are not carried out: they may be false, null or empty.
constexpr std::array<std::string_view, 13> off_only = {"alora_invocation_tokens",
                                                       "arrow_config",
                                                       "kasa_config",
                                                       "layer_replication",
                                                       "lora_bias",
                                                       "lora_ga_config",
                                                       "monteclora_config",
                                                       "target_parameters",
                                                       "trainable_token_indices",
                                                       "use_bdlora",
                                                       "use_dora",
                                                       "use_qalora",
                                                       "velora_config"};
constexpr std::array<std::string_view, 11> bound = {
    "alpha_pattern", "bias", "fan_in_fan_out", "init_lora_weights", "lora_alpha", "modules_to_save",
    "peft_type",     "r",    "rank_pattern",   "target_modules",    "use_rslora"};

bool is_off(const Json& v) {
  if (v.is_null() || v.as_bool() == std::optional(false)) return true;
  if (const JsonArray* a = v.as_array()) return a->empty();
  if (const JsonObject* o = v.as_object()) return o->empty();
  return false;
}

bool ends_with_components(std::string_view name, std::string_view end) {
  return name == end || (name.size() > end.size() && name.ends_with(end) && name[name.size() - end.size() - 1] == '.');
}

// Names of modules are plain: letters, digits, _ and dots. PEFT reads these keys as regular expressions.
bool is_plain(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

class ConfigReader {
 public:
  ConfigReader(const Json& root, const std::string& name) : root_(root), name_(name) {}

  Result<AdapterConfig> read() {
    const JsonObject* members = root_.as_object();
    if (members == nullptr)
      return Error{"adapter-config", name_ + ": the file must hold an object, and holds " + std::string(kind_name(root_.kind())), {}, {}};
    for (const JsonMember& m : *members) judge(m);
    if (!error_) type();
    if (!error_) numbers();
    if (!error_) names();
    if (error_) return std::move(*error_);
    return std::move(out_);
  }

 private:
  void fail(const char* kind, const Json* at, const std::string& what, std::string help = {}) {
    if (!error_)
      error_ =
          Error{kind, name_ + (at != nullptr && at->line() > 0 ? ":" + std::to_string(at->line()) : "") + ": " + what, {}, std::move(help)};
  }
  static std::string shown(const Json& v) { return printable(dump(v), 60); }

  // Whether a key is known, and what it may be.
  void judge(const JsonMember& m) {
    const auto among = [&](const auto& keys) { return std::find(keys.begin(), keys.end(), m.key) != keys.end(); };
    if (among(bound) || among(ignored)) return;
    if (among(off_only)) {
      if (!is_off(m.value))
        fail("adapter-unsupported", &m.value, "`" + m.key + "` is " + shown(m.value) + ": what it does to the weights is not carried out",
             "merge the adapter where it was trained, and load the merged checkpoint");
      return;
    }
    std::vector<std::string_view> known(bound.begin(), bound.end());
    known.insert(known.end(), ignored.begin(), ignored.end());
    known.insert(known.end(), off_only.begin(), off_only.end());
    const auto near = nearest(m.key, std::span<const std::string_view>(known));
    fail("adapter-key", &m.value, "the key " + quote(m.key) + " is not known: what it means for the weights cannot be told",
         near ? "did you mean " + quote(*near) + "?" : "take it out if it does not change what the adapter is");
  }

  const Json* find(const char* key) const {
    const Json* v = root_.find(key);
    return v != nullptr && !v->is_null() ? v : nullptr;
  }
  bool flag(const char* key) {
    const Json* v = find(key);
    if (v == nullptr) return false;
    if (!v->is_bool()) fail("adapter-config", v, std::string("`") + key + "` is " + shown(*v) + ": expected true or false");
    return v->as_bool().value_or(false);
  }

  void type() {
    const Json* type = find("peft_type");
    const std::string* text = type != nullptr ? type->as_string() : nullptr;
    if (text == nullptr) return fail("adapter-config", type, "`peft_type` is missing, or no text", "a low-rank adapter says \"LORA\"");
    if (*text != "LORA")
      return fail("adapter-unsupported", type, "`peft_type` is " + quote(*text, 60) + ": adapters of type LORA are carried out",
                  "merge the adapter where it was trained, and load the merged checkpoint");
    // These ways to begin change the base's weights, so that the adapter fits another base than the one published.
    if (const Json* begin = find("init_lora_weights"); begin != nullptr && !begin->is_bool()) {
      const std::string* how = begin->as_string();
      if (how == nullptr || (*how != "gaussian" && *how != "eva" && *how != "orthogonal"))
        fail("adapter-unsupported", begin,
             "`init_lora_weights` is " + shown(*begin) + ": such an adapter is one of a base whose weights were changed first",
             "convert it to a plain one where it was trained (path_initial_model_for_weight_conversion), or load the merged checkpoint");
    }
  }

  std::optional<std::int64_t> rank(const Json& v, const std::string& key) {
    const auto n = v.as_int();
#ifdef MODELC_PLANTED_FAULT                                 // tests/fuzz: the fuzzer must find this one
    constexpr std::int64_t least = 0;
#else
    constexpr std::int64_t least = 1;
#endif
    if (n && *n >= least && *n <= max_rank) return n;
    fail("adapter-config", &v, "`" + key + "` is " + shown(v) + ": a rank is a whole number from 1 to " + grouped(max_rank));
    return std::nullopt;
  }
  std::optional<double> alpha(const Json& v, const std::string& key) {
    const auto x = v.as_double();
    if (x && std::isfinite(*x)) return x;
    fail("adapter-config", &v, "`" + key + "` is " + shown(v) + ": expected a number");
    return std::nullopt;
  }

  void numbers() {
    const Json *r = find("r"), *a = find("lora_alpha");
    if (r == nullptr || a == nullptr)
      return fail("adapter-config", nullptr, std::string("`") + (r == nullptr ? "r" : "lora_alpha") + "` is missing");
    out_.rank = rank(*r, "r").value_or(0);
    out_.alpha = alpha(*a, "lora_alpha").value_or(0);
    pattern("rank_pattern", out_.ranks, [this](const Json& v, const std::string& key) { return rank(v, key); });
    pattern("alpha_pattern", out_.alphas, [this](const Json& v, const std::string& key) { return alpha(v, key); });
    out_.rank_stabilized = flag("use_rslora");
    out_.fan_in_fan_out = flag("fan_in_fan_out");
  }

  template <class T, class Read> void pattern(const char* key, std::vector<std::pair<std::string, T>>& to, Read read) {
    const Json* v = find(key);
    if (v == nullptr) return;
    const JsonObject* members = v->as_object();
    if (members == nullptr)
      return fail("adapter-config", v, std::string("`") + key + "` is " + shown(*v) + ": expected an object of module names");
    for (const JsonMember& m : *members) {
      const std::string of = std::string(key) + "." + printable(m.key, 200);
      // PEFT writes a name that ends another one as "^whole.name".
      const std::string name = m.key.starts_with('^') ? m.key.substr(1) : m.key;
      if (!is_plain(name))
        return fail("adapter-unsupported", &m.value, "`" + of + "`: a pattern for module names is not carried out, only names");
      if (const auto x = read(m.value, of)) to.emplace_back(m.key, *x);
    }
  }

  void list(const char* key, std::vector<std::string>& to) {
    const Json* v = find(key);
    if (v == nullptr) return;
    if (v->is_string() && std::string_view(key) == "target_modules") return;   // a pattern, or "all-linear": the tensors tell
    const JsonArray* items = v->as_array();
    if (items == nullptr)
      return fail("adapter-config", v, std::string("`") + key + "` is " + shown(*v) + ": expected a list of module names");
    for (const Json& item : *items) {
      const std::string* name = item.as_string();
      if (name == nullptr || name->empty())
        return fail("adapter-config", &item, std::string("`") + key + "` holds " + shown(item) + ": expected module names");
      to.push_back(*name);
    }
  }

  void names() {
    list("target_modules", out_.targets);
    list("modules_to_save", out_.saved);
    if (const Json* bias = find("bias")) {
      const std::string* text = bias->as_string();
      if (text == nullptr || (*text != "none" && *text != "all" && *text != "lora_only"))
        fail("adapter-config", bias, "`bias` is " + shown(*bias) + ": expected \"none\", \"all\" or \"lora_only\"");
    }
  }

  const Json& root_;
  const std::string& name_;
  AdapterConfig out_;
  std::optional<Error> error_;
};

template <class T> T value_of(const std::vector<std::pair<std::string, T>>& patterns, std::string_view module, T otherwise) {
  for (const auto& [key, value] : patterns)
    if (key.starts_with('^') ? module == std::string_view(key).substr(1) : ends_with_components(module, key)) return value;
  return otherwise;
}

}  // namespace

std::int64_t AdapterConfig::rank_of(std::string_view module) const { return value_of(ranks, module, rank); }

double AdapterConfig::scale_of(std::string_view module) const {
  const auto r = static_cast<double>(rank_of(module));
  return value_of(alphas, module, alpha) / (rank_stabilized ? std::sqrt(r) : r);
}

bool AdapterConfig::targets_module(std::string_view module) const {
  return targets.empty() ||
         std::any_of(targets.begin(), targets.end(), [&](const std::string& t) { return ends_with_components(module, t); });
}

Result<AdapterConfig> read_adapter_config(const Json& root, const std::string& name) { return ConfigReader(root, name).read(); }

}  // namespace modelc
