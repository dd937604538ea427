#include "frontend/sema/sections.h"

#include <algorithm>
#include <set>

#include "frontend/sema/checkpoint_rules.h"
#include "frontend/sema/shard.h"
#include "runtime/abi/encoding.h"
#include "runtime/base/strings.h"
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
    struct Line {
      TensorPattern pattern;
      std::optional<std::int64_t> low = {}, high = {};
      bool range = false;
      std::int64_t elements = 0;                           // of the list, as far as they have weights
    };
    std::vector<Line> lines;
    for (const auto& entry : section.entries) {
      target(entry.target);
      one_of(entry.device, {"gpu", "cpu"}, "a device");
      Line& line = lines.emplace_back(Line{TensorPattern(entry.target.text)});
      line.range = entry.range.has_value();
      if (!entry.range) continue;
      for (const bool low : {true, false}) {
        const ast::Expr* end = (low ? entry.range->low : entry.range->high).get();
        if (end == nullptr) continue;
        const Value value = in_.evaluator().eval(*end, env);
        if (value.is(ValueKind::integer)) (low ? line.low : line.high) = value.as_int();
        if (value.is_error() || value.is(ValueKind::integer)) continue;
        in_.sink().error(code::section_target_unknown, end->span, "a range of layers has whole numbers, not " + kind_name(value));
      }
    }
    // The first line that matches a weight counts.
    std::vector<std::size_t> decides(lines.size());
    std::size_t nowhere = 0;
    for (const graph::WeightInstance& w : weights()) {
      const auto index_in = [&](const Line& line) -> std::optional<std::uint64_t> {
        std::string rest;
        if (!line.pattern.match_prefix(w.name, rest)) return std::nullopt;
        return parse_uint(std::string_view(rest).substr(0, rest.find('.')));
      };
      for (Line& line : lines)
        if (const auto index = line.range ? index_in(line) : std::nullopt)
          line.elements = std::max(line.elements, static_cast<std::int64_t>(*index) + 1);
      const auto it = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
        std::string rest;
        if (!line.range) return line.pattern.match_prefix(w.name, rest).has_value();
        const auto index = index_in(line);
        return index && static_cast<std::int64_t>(*index) >= line.low.value_or(0) &&
               static_cast<std::int64_t>(*index) < line.high.value_or(INT64_MAX);
      });
      ++(it == lines.end() ? nowhere : decides[static_cast<std::size_t>(it - lines.begin())]);
    }
    for (std::size_t i = 0; i < lines.size(); ++i) check_range(section.entries[i], lines[i].low, lines[i].high, lines[i].elements);
    for (std::size_t i = 0; i < lines.size(); ++i)
      say(section.entries[i].device.text + "(" + section.entries[i].number.text + ")", decides[i]);
    if (nowhere != 0) say("nowhere", nowhere);
  }

  // A range of a list that this configuration has (elements > 0) lies in it; it may hold nothing.
  void check_range(const ast::PlaceSection::Entry& entry, std::optional<std::int64_t> low, std::optional<std::int64_t> high,
                   std::int64_t elements) {
    if (!entry.range || elements == 0) return;
    const std::string list = "`" + entry.target.text + "` has " + std::to_string(elements) + (elements == 1 ? " element" : " elements") +
                             " in this configuration";
    const std::int64_t first = low.value_or(0), end = high.value_or(elements);
    if (end > elements)
      in_.sink().error(code::section_target_unknown, entry.range->high->span, "the range ends at " + std::to_string(end) + ", and " + list);
    else if (first < 0 || first > end)                          // 0..div(1, 2) is nothing, and no mistake
      in_.sink().error(code::section_target_unknown, entry.span,
                       "the range " + std::to_string(first) + ".." + std::to_string(end) + " ends before it begins; " + list);
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
    case ast::ItemKind::place: return "`place` takes effect in a later version: the whole model runs on one device";
    default: return "";
  }
}

}  // namespace

void check_sections(Instances& instances, ClassInfo& root, const Imports& imports, std::vector<std::string>& notes) {
  const ModuleDef& def = root.instance->def;
  if (def.sections.empty()) return;
  Sections sections(instances, root, imports, notes);
  for (const auto& section : def.sections) {
    const std::string said = sections.check(section);
    if (section.item->kind == ast::ItemKind::policy) continue;                // does what it says, in mode fast
    notes.push_back(instances.sources().place(section.item->span) + ": " + std::string(later(section.item->kind)) +
                    (said.empty() ? "" : " (" + said + ")"));
  }
}

}  // namespace modelc::sema
