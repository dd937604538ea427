// test: the test blocks of a model file. What compares numbers runs twice: in the reference evaluator, and compiled, the
// way `run` and `verify` do, where the generated code carries out what the model needs; where it does not, that is said.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "codegen/driver/backends.h"
#include "codegen/driver/commands.h"
#include "codegen/driver/host_compiler.h"
#include "codegen/driver/interrupts.h"
#include "codegen/driver/pipeline.h"
#include "codegen/driver/random_checkpoint.h"
#include "codegen/driver/reference.h"
#include "codegen/driver/test_block.h"
#include "codegen/driver/test_inputs.h"
#include "frontend/diagnostics/render.h"
#include "frontend/sema/test_programs.h"
#include "runtime/base/strings.h"
#include "runtime/base/yaml.h"
#include "runtime/checkpoint/open.h"
#include "runtime/device/place_text.h"

namespace modelc::driver {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t drawn_rounds = 3;                  // of an operation's test whose inputs are drawn

class TestRun {
 public:
  TestRun(const Options& options, const std::string& file, const std::string& name) : options_(options), file_(file), name_(name) {}

  // What the generated code does not carry out, of a test that the reference evaluator alone has run; else empty.
  const std::string& reference_alone() const { return reference_alone_; }
  // What the test asks for and nothing here can run: "vulkan: …".
  const std::vector<std::string>& skipped() const { return skipped_; }
  // Whether anything was compared. False of a test that passed: all that it asks for is in skipped().
  bool compared() const { return compared_; }

  // Empty: passed; else what is wrong.
  std::string run() {
    // A session of its own, so that the messages of one test are not those of another.
    Session s(options_);
    if (!load_model(s, file_)) return rendered(s);
    const ast::TestDecl* decl = nullptr;
    for (const sema::Test& t : sema::tests_of(*s.imports))
      if (t.decl->name.value == name_) decl = t.decl, folder_ = t.folder, written_in_ = t.decl->span.file;
    if (!decl) return "the test is gone";
    auto block = read_test(*decl, folder_);
    if (!block) return block.error().message;
    block_ = std::move(*block);
    if (block_.op != nullptr) {
      std::string drawn;                                   // the sizes of inputs by chance; none: all are given
      std::string wrong = operation(s, 0, drawn);
      for (std::uint64_t round = 1; wrong.empty() && compared_ && !drawn.empty() && round < drawn_rounds; ++round) {
        Session each(options_);
        if (!load_model(each, file_)) return rendered(each);
        for (const sema::Test& t : sema::tests_of(*each.imports))
          if (t.decl->name.value == name_) block_ = *read_test(*t.decl, folder_);
        wrong = operation(each, round, drawn);
      }
      return wrong.empty() || drawn.empty() ? wrong : "with inputs by chance, " + drawn + ": " + wrong;
    }

    std::vector<std::string> checkpoints = block_.checkpoints;
    if (checkpoints.empty() && !block_.seed && block_.error) return with_config(s, nullptr, "");
    if (checkpoints.empty() && !block_.seed) return "it names no checkpoint: `checkpoint \"folder\"` or `checkpoint random 1`";
    if (block_.seed) checkpoints.emplace_back("");
    for (const std::string& path : checkpoints) {
      // Its own once more; the block keeps to the first one's text.
      Session each(options_);
      if (!load_model(each, file_)) return rendered(each);
      std::optional<CheckpointIndex> index;
      if (!path.empty()) {
        auto opened = open_checkpoint(path);
        if (!opened) return opened.error().text();
        index.emplace(std::move(*opened));
      }
      for (const sema::Test& t : sema::tests_of(*each.imports))
        if (t.decl->name.value == name_) block_.inputs = read_test(*t.decl, folder_)->inputs;
      if (std::string wrong = with_config(each, index ? &*index : nullptr, path); !wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  std::string rendered(Session& s) const { return diag::render(s.sink, s.sources); }

  std::string with_config(Session& s, const CheckpointIndex* checkpoint, const std::string& checkpoint_path) {
    sema::ConfigInput config;
    if (!block_.config_file.empty()) {
      config.name = fs::path(block_.config_file).filename().string();
      auto file = read_config_file(block_.config_file, {.name = config.name});
      if (!file) {
        diag::error_in_text(s.sink, s.sources, diag::code::config_unreadable, block_.config_file, config.name, file.error());
        return block_.error ? judge_error(s) : rendered(s);
      }
      config.tree = std::move(file->root);
      config.text = s.sources.add(config.name, std::move(file->text), block_.config_file);
      config.folder = fs::path(block_.config_file).parent_path().string();
    } else if (checkpoint && checkpoint->config) {
      config.tree = checkpoint->config->root;
      config.name = fs::path(checkpoint->config->path).filename().string();
      config.text = s.sources.add(config.name, checkpoint->config->text, checkpoint->config->path);
      config.folder = checkpoint_path;
    } else if (checkpoint && checkpoint->metadata) {
      auto tree = config_of_file(s, *checkpoint);
      if (!tree) return block_.error ? judge_error(s) : rendered(s);
      config = std::move(*tree);
    } else if (block_.values) {
      config.tree = *block_.values;
      config.name = s.sources.display_name(written_in_);
      config.text = written_in_;
      config.folder = folder_;
      place_lines(config.tree, written_in_, s.sources);
    } else {
      return "it has no configuration: `config \"file\"`, or a checkpoint folder with config.json";
    }
    // What `with` adds has no place in the file that it is added to.
    if (block_.values && config.text != written_in_ && config.tree.is_object()) {
      merge(config.tree, *block_.values);
      config.unplaced = "the test's `with`";
    }

    auto program = analyze_model(s, &config);
    if (program && checkpoint) check_weights(s, program->graph, *checkpoint);
    if (block_.error) return judge_error(s);
    if (!program || s.sink.has_errors()) return rendered(s);
    const auto numbers = numbers_of(s, &config, block_.inputs);
    if (!numbers) return rendered(s);

    if (checkpoint) return compare(s, *program, *numbers, *checkpoint, checkpoint_path);
    return with_random(s, *program, *numbers, *block_.seed);
  }

  std::string with_random(Session& s, const sema::Program& program, const Numbers& numbers, std::uint64_t seed) {
    auto folder = TemporaryFolder::create(temporary_parent(), "modelc-random-");
    if (!folder) return folder.error().text();
    if (auto status = write_random_checkpoint(program.graph, seed, folder->path()); !status) return status.error().text();
    auto opened = open_checkpoint(folder->path() + "/model.safetensors");
    if (!opened) return opened.error().text();
    return compare(s, program, numbers, *opened, folder->path());
  }

  // `op name`: the operation alone, as a model that has no weights. Inputs without numbers are drawn, and `drawn` says their sizes.
  std::string operation(Session& s, std::uint64_t round, std::string& drawn) {
    auto numbers = numbers_of(s, nullptr, block_.inputs);
    if (!numbers) return block_.error ? judge_error(s) : rendered(s);
    std::vector<sema::GivenShape> shapes;
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      const auto& [name, value] = (*numbers)[i];
      shapes.push_back({name, value.shape, block_.inputs[i]->name.span});
    }
    if (!block_.error && block_.expect.empty()) {
      auto inputs = sema::draw_inputs(s.sources, s.imports, *block_.op, shapes, round, s.sink);
      if (!inputs) return rendered(s);
      drawn.clear();
      for (sema::DrawnInput& input : *inputs) {
        drawn += fmt::format("{}{} [{}]", drawn.empty() ? "" : ", ", input.name, fmt::join(input.shape, ", "));
        shapes.push_back({input.name, input.shape, block_.op->name.span});
        numbers->emplace_back(input.name, graph::eval::array(input.shape, std::move(input.values)));
      }
    }
    auto program = sema::op_program(s.sources, s.imports, *block_.op, shapes, sema_options(options_), s.sink);
    if (block_.error) return judge_error(s);
    if (!program || s.sink.has_errors()) return rendered(s);
    skipped_.clear();
    return with_random(s, *program, *numbers, 1);
  }

  // All that the test compares, on one checkpoint.
  std::string compare(Session& s, const sema::Program& program, const Numbers& numbers, const CheckpointIndex& checkpoint,
                      const std::string& path) {
    auto given = fitted(numbers, program.graph);
    if (!given) return given.error().text();
    auto folder = TemporaryFolder::create(temporary_parent(), "modelc-test-");
    if (!folder) return folder.error().text();
    const auto file = [&](const std::string& name) { return folder->path() + "/" + name + ".safetensors"; };
    const std::string inputs = file("inputs");
    if (!given->empty())
      if (Status written = write_numbers(inputs, *given); !written) return written.error().text();
    // What each `expect` names, with the given inputs.
    std::vector<std::pair<std::string, double>> expected = block_.expect;
    for (std::size_t i = 0; i < expected.size() && !given->empty(); ++i) {
      const std::string merged = file("expected-" + std::to_string(i));
      if (Status written = write_numbers(merged, *given, expected[i].first); !written) return written.error().text();
      expected[i].first = merged;
    }

    Mapping mapping = map_weights(mapping_weights(program.graph), rules_for(program.graph.checkpoints, checkpoint), checkpoint,
                                  {.strict = !options_.no_strict, .auto_cast = options_.auto_cast});
    if (!mapping.problems.empty()) return as_error(mapping).text();
    Reference reference(program.graph, std::make_shared<const CheckpointIndex>(checkpoint), std::move(mapping),
                        options_.mode == "fast" ? fast_precision(program.graph) : graph::Precision{});
    const auto in_reference = [](const std::string& wrong) { return "in the reference evaluator: " + wrong; };
    for (const auto& [expect, within] : expected) {
      const auto wrong = reference.expect(expect, within);
      if (!wrong) return in_reference(wrong.error().text());
      if (!wrong->empty()) return in_reference(*wrong);
      compared_ = true;
    }
    for (const TestBlock::Same& same : block_.same) {
      const auto wrong = reference.same(same.runs, same.within, *given);
      if (!wrong) return in_reference(wrong.error().text());
      if (!wrong->empty()) return in_reference(*wrong);
      compared_ = true;
    }
    std::string computed;                                  // inputs and what the reference gives for them
    if (!block_.alike.empty()) {
      if (given->empty()) return "`same " + join(block_.alike[0].runs, ", ") + "` is of given inputs: write `input name = …`";
      auto results = reference.compute(inputs);
      if (!results) return in_reference(results.error().text());
      computed = file("computed");
      if (Status written = write_numbers(computed, *results, inputs); !written) return written.error().text();
    }

    // The rest is compiled. Of `alike` each backend is compared with the reference.
    std::vector<std::pair<const Backend*, double>> alike;
    for (const TestBlock::Same& same : block_.alike)
      for (const std::string& name : same.runs) {
        const Backend* backend = find_backend(name);
        if (!backend->compiled) continue;
        if (backend->missing.empty()) alike.emplace_back(backend, same.within), s.vulkan = s.vulkan || backend->shaders;
        else skipped_.push_back(name + ": " + std::string(backend->missing));
      }
    if (expected.empty() && block_.same.empty() && alike.empty()) return "";
    // What names no backend runs as `place` says, where that can be here; else on the CPU.
    std::vector<std::string> where;
    if (!expected.empty() || !block_.same.empty()) {
      if (const std::string missing = missing_for(program.graph.placement); missing.empty()) {
        s.vulkan = s.vulkan || names_vulkan(program.graph.placement);
      } else {
        where = find_backend("cpu")->arguments;
        skipped_.push_back("`place`: " + missing);
      }
    }
    auto planned = plan_model(s, program);
    if (!planned) {
      // Not the model's mistake: the evaluator has said that it is right.
      std::string what;
      for (const diag::Diagnostic& d : s.sink.diagnostics())
        if (what.find(d.message) == std::string::npos) what += (what.empty() ? "" : "; ") + d.message;
      reference_alone_ = what;
      return "";
    }
    const auto files = emit_model(s, *planned, "", "", true, false);
    if (!files) return diag::render(s.sink, s.sources);      // a shader's mistake has lines of its own
    auto binary = compile_program(*files);
    if (!binary) return binary.error().text();
    const auto verify = [&](const std::string& expect, double within, const std::vector<std::string>& more) {
      std::vector<std::string> arguments = {*binary, "verify", "--checkpoint", path, "--expected", expect, "--within", shortest(within)};
      arguments.insert(arguments.end(), more.begin(), more.end());
      return start(std::move(arguments));
    };
    for (const auto& [expect, within] : expected)
      if (std::string wrong = verify(expect, within, where); !wrong.empty()) return wrong;
    for (const auto& [backend, within] : alike) {
      if (std::string wrong = verify(computed, within, backend->arguments); !wrong.empty())
        return fmt::format("{} against the reference: {}", backend->name, wrong);
      compared_ = true;
    }
    for (const TestBlock::Same& same : block_.same) {
      std::vector<std::string> arguments = {*binary, "same", "--checkpoint", path, "--within", shortest(same.within)};
      if (!given->empty()) arguments.insert(arguments.end(), {"--inputs", inputs});
      arguments.insert(arguments.end(), where.begin(), where.end());
      arguments.insert(arguments.end(), same.runs.begin(), same.runs.end());
      if (std::string wrong = start(std::move(arguments)); !wrong.empty()) return wrong;
    }
    return "";
  }

  std::string start(std::vector<std::string> arguments) const {
    if (options_.threads > 0) arguments.insert(arguments.begin() + 2, {"--threads", std::to_string(options_.threads)});
    if (!options_.mode.empty()) arguments.insert(arguments.begin() + 2, {"--mode", options_.mode});
    if (!options_.isa.empty()) arguments.insert(arguments.begin() + 2, {"--isa", options_.isa});
    std::string output;
    const auto status = run_program(arguments, &output);
    if (!status) return status.error().text();
    if (*status == 0) return "";
    return fmt::format("{} ends with status {}\n{}", arguments[1], *status, output);
  }

  std::string judge_error(Session& s) {
    compared_ = true;
    for (const diag::Diagnostic& d : s.sink.diagnostics()) {
      if (d.code->text != *block_.error) continue;
      if (block_.error_text.empty() || diag::render(d, s.sources).find(block_.error_text) != std::string::npos) return "";
    }
    if (!s.sink.has_errors()) return fmt::format("expected error {}, and nothing was wrong", *block_.error);
    return fmt::format("expected error {}{}, found\n{}", *block_.error,
                       block_.error_text.empty() ? "" : " with \"" + block_.error_text + "\"", rendered(s));
  }

  const Options& options_;
  std::string file_, name_, folder_;
  source::FileId written_in_;                        // the same in every session: each loads the same files
  TestBlock block_;
  std::string reference_alone_;
  std::vector<std::string> skipped_;
  bool compared_ = false;
};

}  // namespace

int test_command(const Options& o) {
  std::vector<std::string> names;
  {
    Session s(o);
    if (load_model(s, o.files[0]))
      for (const sema::Test& t : sema::tests_of(*s.imports)) names.push_back(t.decl->name.value);
    if (!s.report()) return s.status();
  }
  const Interruptible interruptible;
  std::map<std::string, int> seen;
  int passed = 0, failed = 0, alone = 0, skipped = 0;
  for (const std::string& name : names) {
    end_if_interrupted();
    TestRun test(o, o.files[0], name);
    const std::string wrong = seen[name]++ > 0 ? "a test before it has the same name" : test.run();
    const bool nothing = wrong.empty() && !test.compared();
    if (!test.reference_alone().empty()) ++alone;
    !wrong.empty() ? ++failed : nothing ? ++skipped : ++passed;
    if (o.json) {
      JsonObject j;
      j.set("test", Json(name));
      j.set("passed", Json(wrong.empty() && !nothing));
      if (!wrong.empty()) j.set("message", Json(wrong));
      if (!test.reference_alone().empty()) j.set("reference_alone", Json(test.reference_alone()));
      JsonArray array;
      for (const std::string& what : test.skipped()) array.push_back(Json(what));
      if (!array.empty()) j.set("skipped", Json(std::move(array)));
      std::printf("%s\n", dump(Json(std::move(j))).c_str());
    } else {
      std::printf("%s  %s\n", !wrong.empty() ? "FAILED" : nothing ? "SKIP  " : "ok    ", name.c_str());
      for (std::string_view line : split(wrong, '\n'))
        if (!wrong.empty()) std::printf("        %.*s\n", static_cast<int>(line.size()), line.data());
      if (!test.reference_alone().empty())
        std::printf("        in the reference evaluator alone; generated code: %s\n", test.reference_alone().c_str());
      for (const std::string& what : test.skipped()) std::printf("        skipped: %s\n", what.c_str());
    }
    std::fflush(stdout);
  }
  if (!o.json) {
    std::string line = fmt::format("{} passed, {} failed", passed, failed);
    if (skipped > 0) line += fmt::format(", {} skipped", skipped);
    if (alone > 0) line += fmt::format("; {} in the reference evaluator alone", alone);
    std::printf("%s\n", line.c_str());
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace modelc::driver
