// test: the test blocks of a model file. What compares numbers runs twice: in the reference evaluator, and compiled, the way
// `run` and `verify` do, where the generated code carries out what the model needs; where it does not, that is said.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "codegen/driver/commands.h"
#include "codegen/driver/host_compiler.h"
#include "codegen/driver/pipeline.h"
#include "codegen/driver/random_checkpoint.h"
#include "codegen/driver/reference.h"
#include "codegen/emit/cpp/namer.h"
#include "frontend/diagnostics/render.h"
#include "runtime/base/strings.h"
#include "runtime/base/yaml.h"
#include "runtime/checkpoint/open.h"

namespace modelc::driver {

namespace fs = std::filesystem;

namespace {

// A value written in a test block: numbers, strings, booleans, none, lists and objects of these.
std::optional<Json> literal(const ast::Expr& e) {
  if (const auto* l = dynamic_cast<const ast::LiteralExpr*>(&e)) {
    switch (l->value.kind) {
      case ast::LiteralKind::string: return Json(l->value.text);
      case ast::LiteralKind::integer: return Json(static_cast<std::int64_t>(l->value.integer));
      case ast::LiteralKind::floating: return Json(l->value.floating);
      case ast::LiteralKind::boolean: return Json(l->value.boolean);
      case ast::LiteralKind::none: return Json(nullptr);
    }
  }
  if (const auto* u = dynamic_cast<const ast::UnaryExpr*>(&e); u && u->op == ast::UnaryOp::negate) {
    const auto v = literal(*u->operand);
    if (v && v->as_int()) return Json(-*v->as_int());
    if (v && v->as_double()) return Json(-*v->as_double());
  }
  if (const auto* list = dynamic_cast<const ast::ListExpr*>(&e)) {
    JsonArray array;
    for (const auto& item : list->items) {
      auto v = literal(*item);
      if (!v) return std::nullopt;
      array.push_back(std::move(*v));
    }
    return Json(std::move(array));
  }
  return std::nullopt;
}

std::optional<Json> object_value(const ast::Object& object) {
  JsonObject j;
  for (const auto& entry : object.entries) {
    auto v = entry.object ? object_value(*entry.object) : literal(*entry.value);
    if (!v) return std::nullopt;
    j.set(entry.key.text, std::move(*v));
  }
  return Json(std::move(j));
}

// `with { a: …, b: { c: … } }` merged into a configuration; null takes a key out, as a config.json's null is absence.
void merge(Json& into, const Json& with) {
  JsonObject* target = into.as_object();
  for (const JsonMember& m : *with.as_object()) {
    Json* there = target->find(m.key);
    if (there && there->is_object() && m.value.is_object()) merge(*there, m.value);
    else target->set(m.key, m.value);
  }
}

class TestRun {
 public:
  TestRun(const Options& options, const std::string& file, const std::string& name) : options_(options), file_(file), name_(name) {}

  // What the generated code does not carry out, of a test that the reference evaluator alone has run; else empty.
  const std::string& reference_alone() const { return reference_alone_; }

  // Empty: passed; else what is wrong.
  std::string run() {
    // A session of its own, so that the messages of one test are not those of another.
    Session s(options_);
    if (!load_model(s, file_)) return rendered(s);
    const ast::TestDecl* decl = nullptr;
    for (const sema::Test& t : sema::tests_of(*s.imports))
      if (t.decl->name.value == name_) decl = t.decl, folder_ = t.folder;
    if (!decl) return "the test is gone";
    if (std::string wrong = collect(*decl); !wrong.empty()) return wrong;

    std::vector<std::string> checkpoints = files_;
    if (checkpoints.empty() && !seed_) return error_ ? with_config(s, nullptr, "") : "it names no checkpoint: `checkpoint \"folder\"` or `checkpoint random 1`";
    if (seed_) checkpoints.emplace_back("");
    for (const std::string& path : checkpoints) {
      Session each(options_);
      if (!load_model(each, file_)) return rendered(each);
      std::optional<CheckpointIndex> index;
      if (!path.empty()) {
        auto opened = open_checkpoint(path);
        if (!opened) return opened.error().text();
        index.emplace(std::move(*opened));
      }
      if (std::string wrong = with_config(each, index ? &*index : nullptr, path); !wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  std::string resolve(const std::string& path) const { return (fs::path(folder_) / path).string(); }

  std::string rendered(Session& s) const { return diag::render(s.sink, s.sources); }

  std::string collect(const ast::TestDecl& decl) {
    for (const auto& item : decl.items) {
      if (const auto* c = dynamic_cast<const ast::ConfigTestItem*>(item.get())) {
        if (c->file) config_file_ = resolve(c->file->value);
        if (c->values) {
          auto v = object_value(*c->values);
          if (!v) return "a configuration in a test holds numbers, strings, booleans, none, lists and objects of these";
          values_ = std::move(*v);
        }
      } else if (const auto* k = dynamic_cast<const ast::CheckpointTestItem*>(item.get())) {
        if (k->file) files_.push_back(resolve(k->file->value));
        else seed_ = static_cast<std::uint64_t>(k->seed->integer);
      } else if (const auto* e = dynamic_cast<const ast::ExpectTestItem*>(item.get())) {
        const auto within = literal(*e->within);
        if (!within || !within->as_double()) return "`within` takes a number";
        expect_.emplace_back(resolve(e->file.value), *within->as_double());
      } else if (const auto* m = dynamic_cast<const ast::SameTestItem*>(item.get())) {
        const auto within = literal(*m->within);
        if (!within || !within->as_double()) return "`within` takes a number";
        std::vector<std::string> runs;
        for (const auto& joined : m->runs) {
          std::string text;
          for (const ast::Call& call : joined) {
            text += (text.empty() ? "" : "+") + call.name.text;
            if (!call.args) {                              // an entry
              entries_.insert(call.name.text);
              continue;
            }
            text += "(";
            bool first = true;
            for (const auto& a : call.args->items) {
              const auto v = literal(*a.value);
              if (!v || !v->as_int()) return fmt::format("`{}` takes numbers of tokens", call.name.text);
              text += (first ? "" : ",") + std::to_string(*v->as_int());
              first = false;
            }
            text += ")";
          }
          runs.push_back(std::move(text));
        }
        same_.emplace_back(std::move(runs), *within->as_double());
      } else if (const auto* e2 = dynamic_cast<const ast::ErrorTestItem*>(item.get())) {
        error_ = e2->code.text;
        if (e2->text) error_text_ = e2->text->value;
      } else {
        return "tests of custom operations (`op`, `input`) are not carried out yet";
      }
    }
    if (error_ && (!expect_.empty() || !same_.empty())) return "`error` stands alone: a model that is refused gives nothing to compare";
    if (!error_ && expect_.empty() && same_.empty()) return "it asks for nothing: `expect`, `same` or `error`";
    return "";
  }

  std::string with_config(Session& s, const CheckpointIndex* checkpoint, const std::string& checkpoint_path) {
    sema::ConfigInput config;
    if (!config_file_.empty()) {
      auto file = read_config_file(config_file_);
      if (!file) return file.error().text();
      config.tree = std::move(file->root);
      config.name = fs::path(config_file_).filename().string();
      config.folder = fs::path(config_file_).parent_path().string();
    } else if (checkpoint && checkpoint->config) {
      config.tree = checkpoint->config->root;
      config.folder = checkpoint_path;
    } else if (checkpoint && checkpoint->metadata) {
      auto tree = config_of_file(s, *checkpoint);
      if (!tree) return error_ ? judge_error(s) : rendered(s);
      config = std::move(*tree);
    } else if (values_) {
      config.tree = Json(JsonObject{});
      config.name = "the test's config";
      config.folder = folder_;
    } else {
      return "it has no configuration: `config \"file\"`, or a checkpoint folder with config.json";
    }
    if (values_ && config.tree.is_object()) merge(config.tree, *values_);

    auto program = analyze_model(s, &config);
    if (program && checkpoint) check_weights(s, program->graph, *checkpoint);
    if (error_) return judge_error(s);
    if (!program || s.sink.has_errors()) return rendered(s);

    std::string path = checkpoint_path;
    std::optional<TemporaryFolder> random;
    std::optional<CheckpointIndex> made_index;
    if (!checkpoint) {
      auto made = TemporaryFolder::create(temporary_parent(), "modelc-random-");
      if (!made) return made.error().text();
      random.emplace(std::move(*made));
      if (auto status = write_random_checkpoint(program->graph, *seed_, random->path()); !status) return status.error().text();
      path = random->path();
      auto opened = open_checkpoint(path + "/model.safetensors");
      if (!opened) return opened.error().text();
      made_index.emplace(std::move(*opened));
      checkpoint = &*made_index;
    }
    if (std::string wrong = with_reference(program->graph, *checkpoint); !wrong.empty()) return "in the reference evaluator: " + wrong;

    auto planned = plan_model(s, *program);
    if (!planned) {
      // Not the model's mistake: the evaluator has said that it is right.
      std::string what;
      for (const diag::Diagnostic& d : s.sink.diagnostics())
        if (what.find(d.message) == std::string::npos) what += (what.empty() ? "" : "; ") + d.message;
      reference_alone_ = what;
      return "";
    }
    auto binary = compile_program(emit_model(s, *planned, "", "", true));
    if (!binary) return binary.error().text();
    for (const auto& [expected, within] : expect_)
      if (std::string wrong = start({*binary, "verify", "--checkpoint", path, "--expected", expected, "--within", shortest(within)}); !wrong.empty())
        return wrong;
    if (!same_.empty() && !emit::is_language_model(*planned)) {
      reference_alone_ = "`same` of a model that does not map tokens to logits is not carried out by it";
      return "";
    }
    if (!entries_.empty() && !same_.empty()) {
      reference_alone_ = "`same` of runs with entries (" + join(std::vector<std::string>(entries_.begin(), entries_.end()), ", ") + ") is not carried out by it";
      return "";
    }
    for (const auto& [runs, within] : same_) {
      std::vector<std::string> arguments = {*binary, "same", "--checkpoint", path, "--within", shortest(within)};
      arguments.insert(arguments.end(), runs.begin(), runs.end());
      if (std::string wrong = start(std::move(arguments)); !wrong.empty()) return wrong;
    }
    return "";
  }

  std::string with_reference(const graph::Module& module, const CheckpointIndex& checkpoint) const {
    Mapping mapping = map_weights(mapping_weights(module), rules_for(module.checkpoints, checkpoint), checkpoint,
                                  {.strict = !options_.no_strict, .auto_cast = options_.auto_cast});
    if (!mapping.problems.empty()) return as_error(mapping).text();
    Reference reference(module, std::make_shared<const CheckpointIndex>(checkpoint), std::move(mapping));
    for (const auto& [expected, within] : expect_) {
      const auto wrong = reference.expect(expected, within);
      if (!wrong) return wrong.error().text();
      if (!wrong->empty()) return *wrong;
    }
    for (const auto& [runs, within] : same_) {
      const auto wrong = reference.same(runs, within);
      if (!wrong) return wrong.error().text();
      if (!wrong->empty()) return *wrong;
    }
    return "";
  }

  std::string start(std::vector<std::string> arguments) const {
    if (options_.threads > 0) arguments.insert(arguments.begin() + 2, {"--threads", std::to_string(options_.threads)});
    if (!options_.isa.empty()) arguments.insert(arguments.begin() + 2, {"--isa", options_.isa});
    std::string output;
    const auto status = run_program(arguments, &output);
    if (!status) return status.error().text();
    if (*status == 0) return "";
    return fmt::format("{} ends with status {}\n{}", arguments[1], *status, output);
  }

  std::string judge_error(Session& s) const {
    for (const diag::Diagnostic& d : s.sink.diagnostics()) {
      if (d.code->text != *error_) continue;
      if (error_text_.empty() || diag::render(d, s.sources).find(error_text_) != std::string::npos) return "";
    }
    if (!s.sink.has_errors()) return fmt::format("expected error {}, and nothing was wrong", *error_);
    return fmt::format("expected error {}{}, found\n{}", *error_, error_text_.empty() ? "" : " with \"" + error_text_ + "\"", rendered(s));
  }

  const Options& options_;
  std::string file_, name_, folder_;
  std::string config_file_;
  std::optional<Json> values_;
  std::vector<std::string> files_;
  std::optional<std::uint64_t> seed_;
  std::vector<std::pair<std::string, double>> expect_;
  std::vector<std::pair<std::vector<std::string>, double>> same_;
  std::set<std::string> entries_;                          // named in runs
  std::optional<std::string> error_;
  std::string error_text_;
  std::string reference_alone_;
};

}  // namespace

int test_command(const Options& o) {
  std::vector<std::string> names;
  {
    Session s(o);
    if (load_model(s, o.files[0]))
      for (const sema::Test& t : sema::tests_of(*s.imports)) names.push_back(t.decl->name.value);
    if (!s.report()) return 1;
  }
  std::map<std::string, int> seen;
  int passed = 0, failed = 0, alone = 0;
  for (const std::string& name : names) {
    TestRun test(o, o.files[0], name);
    const std::string wrong = seen[name]++ > 0 ? "a test before it has the same name" : test.run();
    if (!test.reference_alone().empty()) ++alone;
    wrong.empty() ? ++passed : ++failed;
    if (o.json) {
      JsonObject j;
      j.set("test", Json(name));
      j.set("passed", Json(wrong.empty()));
      if (!wrong.empty()) j.set("message", Json(wrong));
      if (!test.reference_alone().empty()) j.set("reference_alone", Json(test.reference_alone()));
      std::printf("%s\n", dump(Json(std::move(j))).c_str());
    } else {
      std::printf("%s  %s\n", wrong.empty() ? "ok    " : "FAILED", name.c_str());
      for (std::string_view line : split(wrong, '\n'))
        if (!wrong.empty()) std::printf("        %.*s\n", static_cast<int>(line.size()), line.data());
      if (!test.reference_alone().empty())
        std::printf("        in the reference evaluator alone; generated code: %s\n", test.reference_alone().c_str());
    }
    std::fflush(stdout);
  }
  if (!o.json && alone > 0) std::printf("%d passed, %d failed; %d in the reference evaluator alone\n", passed, failed, alone);
  else if (!o.json) std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace modelc::driver
