#include "frontend/sema/sections.h"

#include <algorithm>
#include <set>

#include "frontend/sema/checkpoint_rules.h"
#include "runtime/abi/encoding.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/tensor_pattern.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

class Sections {
 public:
  Sections(Instances& instances, ClassInfo& root, const Imports& imports) : in_(instances), root_(root) {
    // A pattern may match nothing here and something under another configuration; but no name in it may be nobody's.
    for (const FileSymbols* file : imports.in_order()) {
      for (const auto& [name, symbol] : file->declared) {
        if (symbol.kind != SymbolKind::module) continue;
        for (const ast::ItemPtr& item : ast::as<ast::ModuleDecl>(*symbol.decl).members) collect(*item);
      }
    }
  }

  void check(const Leveled<ast::Item>& section) {
    level_ = section.level;
    switch (section.item->kind) {
      case ast::ItemKind::policy: policy(ast::as<ast::PolicySection>(*section.item)); break;
      case ast::ItemKind::quantize: quantize(ast::as<ast::QuantizeSection>(*section.item)); break;
      case ast::ItemKind::shard: shard(ast::as<ast::ShardSection>(*section.item)); break;
      case ast::ItemKind::place: place(ast::as<ast::PlaceSection>(*section.item)); break;
      default: break;
    }
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

  void target(const ast::Tensor& tensor) {
    if (tensor.quoted) return;  // a part of a component may stand in it
    for (const ast::Seg& seg : tensor.segs) {
      if (seg.kind != ast::SegKind::name || components_.contains(seg.text)) continue;
      in_.sink()
          .error(code::section_target_unknown, seg.span, "no module and no weight is called `" + seg.text + "`")
          .help(diag::did_you_mean(seg.text, {components_.begin(), components_.end()}));
      return;
    }
  }

  void policy(const ast::PolicySection& section) {
    static const std::vector<std::string> dtypes = {"f32", "f16", "bf16"};
    for (const auto& entry : section.entries) {
      for (const ast::Tensor& t : entry.targets) {
        const bool word = !t.quoted && t.segs.size() == 1 &&
                          (t.text == "compute" || t.text == "residual" || t.text == "cache" || t.text == "state");
        if (!word) target(t);
        if (const auto dtype = dtype_from_name(entry.dtype.text))
          in_.module().policy.push_back({t.text, !word, *dtype});
      }
      if (std::find(dtypes.begin(), dtypes.end(), entry.dtype.text) != dtypes.end()) continue;
      in_.sink()
          .error(code::section_target_unknown, entry.dtype.span,
                 "a policy is f32, f16 or bf16, not `" + entry.dtype.text + "`")
          .help(diag::did_you_mean(entry.dtype.text, dtypes));
    }
  }

  void quantize(const ast::QuantizeSection& section) {
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

  void shard(const ast::ShardSection& section) {
    const Environment env = root_.instance->environment(level_);
    for (const auto& entry : section.entries) {
      for (const ast::Path& path : entry.factors) {
        Value value = in_.evaluator().lookup(path.parts.front(), env);
        for (std::size_t i = 1; i < path.parts.size() && !value.is_error(); ++i) {
          value = in_.evaluator().field(value, path.parts[i], path.parts[i - 1].span);
        }
        if (value.is_error() || value.is(ValueKind::integer) || value.is_none()) continue;
        in_.sink().error(
            code::section_target_unknown, path.span,
            "an axis is split by one of its factors, a whole number: `" + path.text() + "` is " + kind_name(value));
      }
    }
  }

  void place(const ast::PlaceSection& section) {
    const Environment env = root_.instance->environment(level_);
    for (const auto& entry : section.entries) {
      target(entry.target);
      if (!entry.range) continue;
      for (const ast::Expr* end : {entry.range->low.get(), entry.range->high.get()}) {
        if (end == nullptr) continue;
        const Value value = in_.evaluator().eval(*end, env);
        if (value.is_error() || value.is(ValueKind::integer)) continue;
        in_.sink().error(code::section_target_unknown, end->span,
                         "a range of layers has whole numbers, not " + kind_name(value));
      }
    }
  }

  Instances& in_;
  ClassInfo& root_;
  std::size_t level_ = 0;
  std::set<std::string> components_;
};

std::string_view later(ast::ItemKind kind) {
  switch (kind) {
    case ast::ItemKind::policy:
      return "`policy` takes effect in a later version of generated code: it computes, carries and caches in f32";
    case ast::ItemKind::quantize:
      return "`quantize` takes effect in a later version: weights are used as the checkpoint stores them";
    case ast::ItemKind::shard: return "`shard` takes effect in a later version: the whole model runs on one device";
    case ast::ItemKind::place: return "`place` takes effect in a later version: the whole model runs on one device";
    default: return "";
  }
}

}  // namespace

graph::eval::Precision precision_of(const graph::Module& module) {
  graph::eval::Precision out;
  DType compute = DType::f32;
  std::vector<std::pair<TensorPattern, DType>> modules;
  for (const graph::PolicyRule& r : module.policy) {
    if (r.pattern) modules.emplace_back(TensorPattern(r.target), r.dtype);
    else if (r.target == "compute") compute = r.dtype;
    else if (r.target == "residual") out.residual = r.dtype;
    else if (r.target == "cache") out.cache = r.dtype;
    else out.state = r.dtype;
  }
  if (module.policy.empty()) return out;
  out.compute = [compute, modules = std::move(modules)](const std::string& path) {
    for (auto it = modules.rbegin(); it != modules.rend(); ++it) {
      std::string rest;
      if (it->first.match_prefix(path, rest)) return it->second;
    }
    return compute;
  };
  return out;
}

void check_sections(Instances& instances, ClassInfo& root, const Imports& imports, std::vector<std::string>& notes) {
  const ModuleDef& def = root.instance->def;
  if (def.sections.empty()) return;
  Sections sections(instances, root, imports);
  for (const auto& section : def.sections) {
    sections.check(section);
    notes.push_back(instances.sources().place(section.item->span) + ": " + std::string(later(section.item->kind)));
  }
}

}  // namespace modelc::sema
