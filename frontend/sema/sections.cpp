#include "frontend/sema/sections.h"

#include <algorithm>
#include <set>

#include "frontend/sema/checkpoint_rules.h"
#include "frontend/sema/shard.h"
#include "runtime/abi/encoding.h"
#include "runtime/base/device_name.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/place_lines.h"
#include "runtime/checkpoint/tensor_pattern.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

class Sections {
 public:
  Sections(Instances& instances, ClassInfo& root, const Imports& imports, std::vector<std::string>& notes)
      : in_(instances), root_(root), imports_(imports), notes_(notes) {
    // A pattern may match nothing here and something under another configuration; but no name in it may be nobody's.
    for (const FileSymbols* file : imports.in_order()) {
      for (const auto& [name, symbol] : file->declared) {
        if (symbol.kind != SymbolKind::module) continue;
        for (const ast::ItemPtr& item : ast::as<ast::ModuleDecl>(*symbol.decl).members) collect(*item);
      }
    }
  }

  // Gives what the lines come to in this configuration: "q8_0: 12 weights".
  std::string check(const Leveled<ast::Item>& section) {
    level_ = section.level;
    said_.clear();
    switch (section.item->kind) {
      case ast::ItemKind::policy: policy(ast::as<ast::PolicySection>(*section.item)); break;
      case ast::ItemKind::quantize: quantize(ast::as<ast::QuantizeSection>(*section.item)); break;
      case ast::ItemKind::shard:
        for (const auto& entry : ast::as<ast::ShardSection>(*section.item).entries)
          one_of(entry.over, {"tensor_parallel", "expert_parallel", "data_parallel"}, "what axes are split over");
        check_shard(in_, root_, level_, ast::as<ast::ShardSection>(*section.item), imports_, notes_,
                    [&](const std::string& line, std::size_t axes) { say(line, axes, "axis"); });
        break;
      case ast::ItemKind::place: place(ast::as<ast::PlaceSection>(*section.item)); break;
      default: break;
    }
    return said_;
  }

 private:
  void collect(const ast::Item& item) {
    const auto add = [&](const std::string& name, const std::optional<ast::At>& at) {
      if (!at || at->self) {
        components_.insert(name);
        return;
      }
      for (const ast::Seg& seg : at->path.segs) components_.insert(seg.text);
    };
    if (const auto* param = ast::try_as<ast::ParamMember>(item)) add(param->name.text, param->at);
    if (const auto* child = ast::try_as<ast::ChildMember>(item)) add(child->name.text, child->at);
  }

  // `words`: what may stand there beside paths.
  void target(const ast::Tensor& tensor, const std::vector<std::string>& words = {}) {
    if (tensor.quoted) return;  // a part of a component may stand in it
    for (const ast::Seg& seg : tensor.segs) {
      if (seg.kind != ast::SegKind::name || components_.contains(seg.text)) continue;
      std::vector<std::string> known(components_.begin(), components_.end());
      known.insert(known.end(), words.begin(), words.end());
      std::string help = diag::did_you_mean(seg.text, known);
      if (help.empty() && !words.empty() && tensor.segs.size() == 1)
        help = "write `compute` for the whole model, `residual`, `cache` or `state`, or a module's path, as in `**.norm`";
      in_.sink()
          .error(code::section_target_unknown, seg.span, "no module and no weight is called `" + seg.text + "`")
          .help(std::move(help));
      return;
    }
  }

  void policy(const ast::PolicySection& section) {
    static const std::vector<std::string> dtypes = {"f32", "f16", "bf16"};
    static const std::vector<std::string> words = {"compute", "residual", "cache", "state"};
    for (const auto& entry : section.entries) {
      for (const ast::Tensor& t : entry.targets) {
        const bool word = !t.quoted && t.segs.size() == 1 && std::find(words.begin(), words.end(), t.text) != words.end();
        if (!word) target(t, words);
        if (const auto dtype = dtype_from_name(entry.dtype.text)) in_.module().policy.push_back({t.text, !word, *dtype});
      }
      if (std::find(dtypes.begin(), dtypes.end(), entry.dtype.text) != dtypes.end()) continue;
      in_.sink()
          .error(code::section_target_unknown, entry.dtype.span, "a policy is f32, f16 or bf16, not `" + entry.dtype.text + "`")
          .help(diag::did_you_mean(entry.dtype.text, dtypes));
    }
  }

  // The whole names of all weights; none of a model with too many to write out.
  std::vector<graph::WeightInstance> weights() const {
    if (root_.instances > Instances::max_instances) return {};
    return graph::weight_instances(in_.module());
  }
  // "q8_0 or file: 12 weights", in the order of the lines.
  void say(const std::string& line, std::size_t count, const std::string& of = "weight") {
    said_ += (said_.empty() ? "" : "; ") + line + ": " + counted(count, of, of == "axis" ? "axes" : of == "matrix" ? "matrices" : of + "s");
  }

  void quantize(const ast::QuantizeSection& section) {
    // Of the lines that give a type the last that matches a weight counts, and so of those that give a least one.
    std::vector<std::size_t> decides(section.entries.size());
    std::vector<std::vector<TensorPattern>> patterns;
    for (const auto& entry : section.entries) {
      patterns.emplace_back();
      for (const ast::Tensor& t : entry.targets) patterns.back().emplace_back(t.text);
    }
    for (const graph::WeightInstance& w : weights()) {
      if (w.decl->role == graph::WeightRole::vector) continue;            // never quantised
      for (const bool floor : {false, true}) {
        for (std::size_t i = section.entries.size(); i-- > 0;) {
          std::string rest;
          const bool here = section.entries[i].never_below == floor &&
                            std::any_of(patterns[i].begin(), patterns[i].end(),
                                        [&](const TensorPattern& p) { return p.match_prefix(w.name, rest).has_value(); });
          if (!here) continue;
          ++decides[i];
          break;
        }
      }
    }
    for (std::size_t i = 0; i < section.entries.size(); ++i) {
      const auto& e = section.entries[i];
      say((e.never_below ? "never below " : "") + e.type.text + (e.or_file ? " or file" : ""), decides[i], "matrix");
    }
    for (const auto& entry : section.entries) {
      for (const ast::Tensor& t : entry.targets) target(t);
      if (encoding_from_name(entry.type.text)) continue;
      std::vector<std::string> names;
      for (int i = 0; i < encoding_count; ++i) names.emplace_back(name(static_cast<Encoding>(i)));
      in_.sink()
          .error(code::section_target_unknown, entry.type.span, "there is no encoding `" + entry.type.text + "`")
          .help(diag::did_you_mean(entry.type.text, names));
    }
  }

  // What a section says of is one of a few words.
  void one_of(const ast::Name& name, const std::vector<std::string>& words, const std::string& what) {
    if (std::find(words.begin(), words.end(), name.text) != words.end()) return;
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i) list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    in_.sink()
        .error(code::section_target_unknown, name.span, what + " is " + list + ", not `" + name.text + "`")
        .help(diag::did_you_mean(name.text, words));
  }

  void place(const ast::PlaceSection& section) {
    const Environment env = root_.instance->environment(level_);
    std::vector<PlaceRule>& rules = in_.module().placement;
    for (const auto& entry : section.entries) {
      target(entry.target);
      one_of(entry.device, {"gpu", "cpu"}, "a device");
      PlaceRule& rule =
          rules.emplace_back(PlaceRule{.pattern = entry.target.text, .device = device(entry), .where = in_.sources().place(entry.span)});
      if (!entry.range) continue;
      for (const bool low : {true, false}) {
        const ast::Expr* end = (low ? entry.range->low : entry.range->high).get();
        if (end == nullptr) continue;
        const Value value = in_.evaluator().eval(*end, env);
        if (value.is(ValueKind::integer)) (low ? rule.first : rule.end) = value.as_int();
        if (value.is_error() || value.is(ValueKind::integer)) continue;
        in_.sink().error(code::section_target_unknown, end->span, "a range of layers has whole numbers, not " + kind_name(value));
      }
    }
    // The first line that matches a weight counts. A list has the elements that have weights.
    const PlaceLines lines(rules);
    std::vector<std::size_t> decides(rules.size());
    std::vector<std::int64_t> elements(rules.size());
    std::size_t nowhere = 0;
    for (const graph::WeightInstance& w : weights()) {
      for (std::size_t i = 0; i < rules.size(); ++i)
        if (const auto index = lines.element(i, w.name)) elements[i] = std::max(elements[i], static_cast<std::int64_t>(*index) + 1);
      const auto line = lines.decides(w.name);
      ++(line ? decides[*line] : nowhere);
    }
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const auto& entry = section.entries[i];
      check_range(entry, rules[i].first, rules[i].end, elements[i]);
      if (root_.instances > Instances::max_instances) continue;            // its weights were not counted
      const auto end = [](const std::optional<std::int64_t>& e) { return e ? std::to_string(*e) : std::string(); };
      const std::string range = entry.range ? "[" + end(rules[i].first) + ".." + end(rules[i].end) + "]" : "";
      say("`" + entry.target.text + range + "` on " + entry.device.text + "(" + entry.number.text + ")", decides[i]);
    }
    if (nowhere != 0) say("by no line, so on the CPU", nowhere);
  }

  // "vulkan:1" for gpu(1), "cpu" for cpu(0).
  std::string device(const ast::PlaceSection::Entry& entry) {
    DeviceName name{.vulkan = entry.device.text == "gpu"};
    constexpr std::int64_t last = 1023;
    const std::int64_t number = entry.number.integer;
    if (name.vulkan && number > last) {
      in_.sink()
          .error(code::section_target_unknown, entry.number.span,
                 "a GPU has a number up to " + std::to_string(last) + ", not " + entry.number.text)
          .help("`modelc devices` lists them: gpu(0) is vulkan:0");
    } else if (!name.vulkan && number != 0) {
      in_.sink()
          .error(code::section_target_unknown, entry.number.span, "there is one CPU device, cpu(0): all its cores are in it")
          .help("write cpu(0)");
    } else if (name.vulkan) {
      name.number = static_cast<int>(number);
    }
    return name.text();
  }

  // A range lies in its list, where this configuration has that (elements > 0); it may hold nothing.
  void check_range(const ast::PlaceSection::Entry& entry, std::optional<std::int64_t> low, std::optional<std::int64_t> high,
                   std::int64_t elements) {
    if (!entry.range) return;
    const std::string list = elements == 0 ? ""
                                           : "`" + entry.target.text + "` has " + std::to_string(elements) +
                                                 (elements == 1 ? " element" : " elements") + " in this configuration";
    const std::int64_t first = low.value_or(0), end = high.value_or(elements == 0 ? std::max<std::int64_t>(first, 0) : elements);
    if (elements > 0 && end > elements)
      in_.sink().error(code::section_target_unknown, entry.range->high->span, "the range ends at " + std::to_string(end) + ", and " + list);
    else if (first < 0)
      in_.sink().error(code::section_target_unknown, entry.span,
                       "the range begins at " + std::to_string(first) + ", and the first element is 0");
    else if (first > end)                                       // 0..div(1, 2) is nothing, and no mistake
      in_.sink().error(
          code::section_target_unknown, entry.span,
          "the range " + std::to_string(first) + ".." + std::to_string(end) + " ends before it begins" + (list.empty() ? "" : "; " + list));
  }

  Instances& in_;
  ClassInfo& root_;
  const Imports& imports_;
  std::vector<std::string>& notes_;
  std::size_t level_ = 0;
  std::set<std::string> components_;
  std::string said_;
};

std::string_view later(ast::ItemKind kind) {
  switch (kind) {
    case ast::ItemKind::quantize:
      return "`quantize` takes effect in `modelc convert --quantize rules`: a run uses weights as the checkpoint stores them";
    case ast::ItemKind::shard: return "`shard` takes effect in a later version: the whole model runs on one device";
    default: return "";
  }
}

}  // namespace

void check_sections(Instances& instances, ClassInfo& root, const Imports& imports, std::vector<std::string>& notes,
                    std::vector<std::string>& facts) {
  const ModuleDef& def = root.instance->def;
  if (def.sections.empty()) return;
  Sections sections(instances, root, imports, notes);
  for (const auto& section : def.sections) {
    const std::string said = sections.check(section);
    if (section.item->kind == ast::ItemKind::policy) continue;                // does what it says, in mode fast
    const std::string at = instances.sources().place(section.item->span) + ": ";
    if (section.item->kind != ast::ItemKind::place)
      notes.push_back(at + std::string(later(section.item->kind)) + (said.empty() ? "" : " (" + said + ")"));
    else if (!said.empty()) facts.push_back(at + "`place`: " + said);
  }
}

}  // namespace modelc::sema
