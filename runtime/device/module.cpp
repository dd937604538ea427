#include "runtime/device/module.h"

#include "runtime/device/module_tree.h"

namespace modelc {
namespace {

std::string join_path(const std::string& above, const std::string& below) {
  if (above.empty() || below.empty()) return above + below;
  return above + "." + below;
}

// Hands on what a module lists, with names below the module that was asked.
class Lister : public MemberVisitor {
 public:
  explicit Lister(std::string below) : below_(std::move(below)) {}
  void weight(const char* path, Weight& w) override { on_weight(join_path(below_, path), w); }
  void child(const char* path, Module& m) override {
    if (*path == '\0') return m.members(*this);            // `at .`: its members count as the parent's own
    on_child(join_path(below_, path), m);
  }
  void element(const char* path, std::int64_t i, Module& m) override { on_child(join_path(below_, join_path(path, std::to_string(i))), m); }
  void state(const char*, StateSlot&) override {}
  virtual void on_weight(const std::string&, Weight&) {}
  virtual void on_child(const std::string&, Module&) {}

 private:
  std::string below_;
};

class Children : public Lister {
 public:
  Children(std::string below, bool deep, std::vector<NamedModule>& out) : Lister(std::move(below)), deep_(deep), out_(out) {}
  void on_child(const std::string& name, Module& m) override {
    out_.push_back({name, &m});
    if (!deep_) return;
    Children below(name, true, out_);
    m.members(below);
  }

 private:
  bool deep_;
  std::vector<NamedModule>& out_;
};

class OwnWeights : public Lister {
 public:
  OwnWeights(std::string below, std::vector<NamedParameter>& out) : Lister(std::move(below)), out_(out) {}
  void on_weight(const std::string& name, Weight& w) override { out_.push_back({name, &w}); }

 private:
  std::vector<NamedParameter>& out_;
};

}  // namespace

std::vector<NamedModule> Module::children() {
  std::vector<NamedModule> out;
  Children v("", false, out);
  members(v);
  return out;
}

std::vector<NamedModule> Module::descendants() {
  std::vector<NamedModule> out;
  Children v("", true, out);
  members(v);
  return out;
}

std::vector<NamedParameter> Module::local_parameters() {
  std::vector<NamedParameter> out;
  OwnWeights v("", out);
  members(v);
  return out;
}

std::vector<NamedParameter> Module::parameters() {
  std::vector<NamedParameter> out = local_parameters();
  for (const NamedModule& m : descendants()) {
    OwnWeights v(m.name, out);
    m.module->members(v);
  }
  return out;
}

// Visits the tree once, modules after their children.
class ModuleTree::Walker : public MemberVisitor {
 public:
  Walker(ModuleTree& tree, std::string path) : tree_(tree), path_(std::move(path)) {}

  void visit(Module& m) {
    m.path_ = path_;
    module_ = &m;
    m.members(*this);
    tree_.bottom_up_.push_back(&m);
  }
  void weight(const char* path, Weight& w) override {
    tree_.weights_.push_back({join_path(path_, path), &w});
    tree_.owners_.push_back(module_);
  }
  void child(const char* path, Module& m) override { Walker(tree_, join_path(path_, path)).visit(m); }
  void element(const char* path, std::int64_t i, Module& m) override {
    Walker(tree_, join_path(path_, join_path(path, std::to_string(i)))).visit(m);
  }
  void state(const char* name, StateSlot& s) override {
    s.index = static_cast<int>(tree_.states_.size());
    tree_.states_.push_back({join_path(path_, name), &s, module_});
  }

 private:
  ModuleTree& tree_;
  std::string path_;
  Module* module_ = nullptr;
};

ModuleTree::ModuleTree(Module& root) { Walker(*this, "").visit(root); }

}  // namespace modelc
