#include "codegen/driver/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "codegen/driver/commands.h"
#include "codegen/driver/settings.h"
#include "frontend/diagnostics/diagnostics.h"
#include "runtime/base/strings.h"

namespace modelc::driver {

namespace {

// An option of the generated binary: checked here no further than its form, and handed on as typed.
void handed_on(CLI::App& app, Options& o, const std::string& name, const std::string& text) {
  app.add_option_function<std::string>(
      name,
      [&o, name](const std::string& v) {
        o.forward.push_back(name);
        o.forward.push_back(v);
      },
      text);
}

void add_imports(CLI::App& app, Options& o) {
  app.add_option("-I", o.import_paths, "folder with files that the model file imports (may be given again)")
      ->type_name("DIR")
      ->allow_extra_args(false);
}

// A value out of a few.
CLI::Validator one_of(const std::vector<std::string>& values) {
  return CLI::Validator(
      [values](std::string& given) -> std::string {
        if (std::find(values.begin(), values.end(), given) != values.end()) return "";
        std::string text;
        for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : i + 1 == values.size() ? " or " : ", ") + values[i];
        const std::string near = diag::did_you_mean(given, values);
        return quote(given) + ", wanted " + text + (near.empty() ? "" : "; " + near);
      },
      "");
}

// "did you mean `--config`? " of the first argument that no option takes; "" when none is near.
std::string near_option(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* o : app.get_options()) {
    for (const std::string& name : o->get_lnames()) known.push_back("--" + name);
    for (const std::string& name : o->get_snames()) known.push_back("-" + name);
  }
  for (const std::string& given : app.remaining(true)) {
    if (!given.starts_with("-")) continue;
    const std::string near = diag::did_you_mean(given.substr(0, given.find('=')), known);
    return near.empty() ? "" : near + " ";
  }
  return "";
}

// The same for one that may be given again.
void each_handed_on(CLI::App& app, Options& o, const std::string& name, const std::string& text) {
  app.add_option_function<std::vector<std::string>>(
         name,
         [&o, name](const std::vector<std::string>& values) {
           for (const std::string& v : values) {
             o.forward.push_back(name);
             o.forward.push_back(v);
           }
         },
         text)
      ->allow_extra_args(false);
}

void add_config(CLI::App& app, Options& o) {
  add_imports(app, o);
  app.add_option("--config", o.config, "config.json or YAML (default: the checkpoint's)");
  app.add_option("--set", o.set, "key=value: supplies or overrides a value of the configuration")->allow_extra_args(false);
}
void add_trailing(CLI::App& app, Options& o) {
  app.add_flag("--allow-trailing-bytes", o.allow_trailing, "accept bytes of a weight file that no tensor covers");
}
void add_load(CLI::App& app, Options& o) {
  app.add_flag("--no-mmap", o.no_mmap, "read the weights into memory instead of mapping them");
  app.add_flag("--no-strict", o.no_strict, "allow tensors that the model does not have");
  app.add_flag("--auto-cast", o.auto_cast, "f32 and bf16 for each other where a weight declares its type");
  add_trailing(app, o);
}
void add_run(CLI::App& app, Options& o) {
  add_config(app, o);
  add_load(app, o);
  app.add_flag_callback(
      "--no-pack", [&o] { o.forward.push_back("--no-pack"); }, "load from the checkpoint, though a pack lies beside it");
  each_handed_on(app, o, "--adapter", "folder of a low-rank adapter to merge into the weights; may be given again");
  app.add_option("--mode", o.mode,
                 "exact (the usual one): all in f32; fast: as the policy says, activations of quantised "
                 "weights in 8 bits, keys and values in f16")
      ->check(one_of({"exact", "fast"}));
  app.add_option("--backend", o.backend, "cpu or vulkan")->check(one_of({"cpu", "vulkan"}));
  app.add_option("--device", o.device, "which device");
  app.add_option("--threads", o.threads, "threads (0: one a core)")->check(CLI::Range(0, 1024));
  app.add_option("--isa", o.isa, "portable, avx2, avx512 or avx512vnni (the best there is)");
  app.add_option("--allow-extension", o.allow_extension, "folder whose C++ a model file may use")->allow_extra_args(false);
  app.add_flag("--json", o.json, "messages and results for a program");
}

CLI::App* command(CLI::App& app, const std::string& name, const std::string& text, Options& o, const std::string& argument,
                  bool many = false) {
  CLI::App* c = app.add_subcommand(name, text);
  auto* f = c->add_option(argument, o.files, argument)->required();
  if (!many) f->expected(1);
  return c;
}

}  // namespace

std::optional<int> parse(int argc, const char* const* argv, Options& o) {
  CLI::App app("modelc: turns a model's description into native code");
  app.set_version_flag("--version", std::string("modelc ") + settings::version);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });

  CLI::App* check = command(app, "check", "check a model file, with a checkpoint against its headers", o, "FILE.model");
  add_config(*check, o);
  check->add_option("--checkpoint", o.checkpoint, "folder or .safetensors files; no weight is read");
  check->add_flag("--no-strict", o.no_strict, "allow tensors that the model does not have");
  check->add_flag("--auto-cast", o.auto_cast, "f32 and bf16 for each other where a weight declares its type");
  add_trailing(*check, o);
  check->add_flag("--json", o.json, "messages for a program, one object a line");

  CLI::App* build = command(app, "build", "write C++ for a model and a configuration", o, "FILE.model");
  add_config(*build, o);
  build->add_option("-o,--output", o.out, "folder for the files")->required();
  build->add_option("--checkpoint", o.checkpoint, "take the configuration from it, and check its headers");
  add_trailing(*build, o);
  build->add_option("--encodings", o.encodings, "encodings of weights to choose shaders by");
  build->add_option("--backend", o.backend, "cpu, vulkan");
  build->add_option("--name", o.name, "class (default: the model's name)");
  build->add_option("--namespace", o.name_space, "namespace (default: the file's name)");
  build->add_option("--depfile", o.depfile, "write what was read, for make and ninja");
  build->add_flag("--inline", o.inline_all, "one function of the whole model");
  build->add_flag("--main", o.stock_main, "also write FILE_main.cpp: a program that generates, verifies, measures");
  build->add_flag("--c-api", o.c_api, "also write FILE_c.h and FILE_c.cpp: the class for runtime/c/modelc.h");
  build->add_flag("--full-paths", o.full_paths, "name files in messages by their path, for editors and build systems");
  build->add_flag("--json", o.json, "messages for a program");

  CLI::App* run = command(app, "run", "compile a model and generate text", o, "FILE.model");
  run->add_option("--checkpoint", o.checkpoint, "folder or .safetensors")->required();
  add_run(*run, o);
  handed_on(*run, o, "--prompt", "text to go on from");
  handed_on(*run, o, "--chat", "a message, through the chat template");
  handed_on(*run, o, "--system", "with --chat: what the assistant is to be");
  handed_on(*run, o, "--tokens", "token ids to go on from: 1,2,3");
  handed_on(*run, o, "-n", "new tokens at most (128)");
  handed_on(*run, o, "--temperature", "0: the best token each time (0)");
  handed_on(*run, o, "--top-k", "draw from the k best");
  handed_on(*run, o, "--top-p", "draw from the best with probability p together");
  handed_on(*run, o, "--min-p", "draw from those with p times the best's probability");
  handed_on(*run, o, "--typical-p", "draw from the most typical with probability p together");
  handed_on(*run, o, "--repetition-penalty", "above 1: seen tokens become less likely");
  handed_on(*run, o, "--frequency-penalty", "taken from a token for each time it was seen");
  handed_on(*run, o, "--presence-penalty", "taken once from a seen token");
  each_handed_on(*run, o, "--logit-bias", "added to a token's logit: 42=-1.5");
  each_handed_on(*run, o, "--stop", "a string that ends the text; may be given again");
  handed_on(*run, o, "--num-return-sequences", "answers to the same prompt, at once (1)");
  handed_on(*run, o, "--seed", "of the random numbers");
  handed_on(*run, o, "--trace", "print values whose names match");
  handed_on(*run, o, "--export", "with --trace: write them to this .safetensors");
  run->add_flag_callback(
      "--ignore-eos", [&o] { o.forward.push_back("--ignore-eos"); }, "go on after the end token");
  run->add_flag_callback(
      "--show-tokens", [&o] { o.forward.push_back("--show-tokens"); }, "ids instead of text");

  CLI::App* verify = command(app, "verify", "compare with a reference's tensors", o, "FILE.model");
  verify->add_option("--checkpoint", o.checkpoint, "folder or .safetensors")->required();
  add_run(*verify, o);
  handed_on(*verify, o, "--expected", ".safetensors with inputs, outputs and stages");
  handed_on(*verify, o, "--within", "largest absolute difference (1e-4)");
  handed_on(*verify, o, "--within-kl", "largest KL divergence of logits");
  handed_on(*verify, o, "--within-kl-99", "what the KL divergence of 99 % of the rows of logits may be");
  handed_on(*verify, o, "--within-mean-kl", "what its mean over the rows may be");
  handed_on(*verify, o, "--chunk", "tokens of a sequence in one call (0: all)");

  CLI::App* bench = command(app, "bench", "measure prefill and decode", o, "FILE.model");
  bench->add_option("--checkpoint", o.checkpoint, "folder or .safetensors, or `random`")->required();
  add_run(*bench, o);
  handed_on(*bench, o, "-p", "tokens of the prompt (512)");
  handed_on(*bench, o, "-n", "tokens generated (64)");
  handed_on(*bench, o, "-c", "positions reserved");
  handed_on(*bench, o, "-r", "repetitions (5)");
  handed_on(*bench, o, "--profile", "write the time of each operation to this .svg, and print it");

  CLI::App* test = command(app, "test", "run the test blocks of a model file", o, "FILE.model");
  add_imports(*test, o);
  test->add_option("--threads", o.threads, "threads (0: one a core)")->check(CLI::Range(0, 1024));
  test->add_option("--isa", o.isa, "portable, avx2 or avx512");
  test->add_option("--mode", o.mode, "exact (the usual one), or fast: the reference evaluator and the compiled model follow the policy")
      ->check(one_of({"exact", "fast"}));
  test->add_flag("--json", o.json, "results for a program, one object a line");

  CLI::App* inspect = command(app, "inspect", "show a checkpoint, or a model's modules and weights", o, "PATH");
  add_config(*inspect, o);
  inspect->add_flag("--all", o.every_tensor, "a line for each tensor");
  add_trailing(*inspect, o);
  inspect->add_flag("--json", o.json, "for a program");

  CLI::App* convert = app.add_subcommand("convert", "write a checkpoint as another format, or in another encoding");
  convert
      ->add_option(
          "FILE.model IN OUT", o.files,
          "the model; its checkpoint (a folder, a .gguf, or `random`: random weights for --config); FILE.gguf or a folder to write")
      ->required()
      ->expected(3);
  add_config(*convert, o);
  convert->add_option("--to", o.to, "gguf or safetensors (default: gguf where OUT ends with .gguf)")
      ->check(CLI::IsMember({"gguf", "safetensors"}));
  convert->add_option("--quantize", o.quantize, "encoding of the matrices: q8_0, q4_k, bf16, …; or `rules`, the model's quantize block");
  convert->add_option("--max-shard-size", o.max_shard_size, "bytes of one .safetensors: 5GB, 300MB; 0 for one file (5GB)");
  convert->add_option("--seed", o.seed, "of random weights (1)");
  convert->add_flag("--no-tokenizer", o.no_tokenizer, "leave the tokenizer out");
  convert->add_option("--threads", o.threads, "threads (0: one a core)")->check(CLI::Range(0, 1024));
  convert->add_flag("--no-mmap", o.no_mmap, "read the weights into memory instead of mapping them");
  convert->add_flag("--no-strict", o.no_strict, "allow tensors that the model does not have, and leave them out");
  add_trailing(*convert, o);
  convert->add_flag("--json", o.json, "the result for a program");

  CLI::App* pack = app.add_subcommand("pack", "write what a load makes of a checkpoint beside it, for later loads to map");
  pack->add_option("FILE.model CHECKPOINT", o.files, "the model; its checkpoint, a folder or a file")->required()->expected(2);
  add_config(*pack, o);
  add_load(*pack, o);
  pack->add_option("--backend", o.backend, "cpu or vulkan: whose later loads map it")->check(one_of({"cpu", "vulkan"}));
  pack->add_option("--device", o.device, "which device");
  pack->add_option("--threads", o.threads, "threads (0: one a core)")->check(CLI::Range(0, 1024));
  pack->add_flag_callback(
      "--full-hash", [&o] { o.forward.push_back("--full-hash"); }, "compare every byte of the files, not size, time and header alone");
  pack->add_flag("--json", o.json, "the result for a program");

  CLI::App* fmt = command(app, "fmt", "write model files in their usual layout", o, "FILE.model", true);
  fmt->add_flag("--check", o.check, "write nothing; name the files that would change, and end with status 1");
  fmt->add_option("--columns", o.columns, "break lines that are longer (120)")->check(CLI::Range(40, 1000));
  fmt->add_flag("--json", o.json, "messages for a program");

  CLI::App* flatten =
      command(app, "flatten", "print a model and all that it needs as one text without imports and inheritance", o, "FILE.model");
  flatten->add_flag("--json", o.json, "messages for a program");

  CLI::App* dump =
      command(app, "dump", "print a stage of the compiler as text, which dump and build read back", o, "FILE.model|.graph|.plan");
  add_config(*dump, o);
  dump->add_option("--checkpoint", o.checkpoint, "take the configuration from it");
  dump->add_option("--stage", o.stage, "ast, tree (the same with its nodes named), program, graph or plan")
      ->required()
      ->check(one_of({"ast", "tree", "program", "graph", "plan"}));
  dump->add_option("--root", o.root, "one module instead of the model: \"Linear(5, 10)\"");
  dump->add_flag("--json", o.json, "messages for a program");

  CLI::App* devices = app.add_subcommand("devices", "list what can run models here, with limits");
  devices->add_flag("--json", o.json, "for a program, one object a line");

  command(app, "explain", "the long form of a message", o, "CODE");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) { return version_command(); } catch (const CLI::CallForHelp&) {
    CLI::App* asked = &app;
    for (CLI::App* s : app.get_subcommands()) asked = s;
    std::fputs(asked->help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& e) {
    std::string name = "modelc";
    for (CLI::App* s : app.get_subcommands()) name += " " + s->get_name();
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      std::vector<std::string> commands;
      for (CLI::App* s : app.get_subcommands({})) commands.push_back(s->get_name());
      const std::string near = diag::did_you_mean(argv[1], commands);
      std::fprintf(stderr, "error: there is no command \"%.60s\"\n  help: %smodelc --help says what there is\n", argv[1],
                   near.empty() ? "" : (near + " ").c_str());
      return 2;
    }
    const std::string near = app.get_subcommands().empty() ? near_option(app) : near_option(*app.get_subcommands().front());
    std::fprintf(stderr, "error: %s\n  help: %s%s --help says what there is\n", e.what(), near.c_str(), name.c_str());
    return 2;
  }
  o.command = app.get_subcommands().front()->get_name();
  if (o.command == "pack") {
    o.checkpoint = {o.files[1]};
    o.files.pop_back();
  }
  return std::nullopt;
}

}  // namespace modelc::driver
