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
#include "runtime/main/help.h"

namespace modelc::driver {

namespace {

// What follows stands under this heading in the help.
void heading(CLI::App& app, const std::string& text) { app.option_defaults()->group(text); }

const char* const model_heading = "the model and its weights";
const char* const where_heading = "where and how it runs";
const char* const output_heading = "what is printed";

// An option of the generated binary: checked here no further than its form, and handed on as typed.
CLI::Option* handed_on(CLI::App& app, Options& o, const std::string& name, const std::string& value, const std::string& text) {
  return app
      .add_option_function<std::string>(
          name,
          [&o, name](const std::string& v) {
            o.forward.push_back(name);
            o.forward.push_back(v);
          },
          text)
      ->type_name(value);
}
// The same for one that may be given again.
void each_handed_on(CLI::App& app, Options& o, const std::string& name, const std::string& value, const std::string& text) {
  app.add_option_function<std::vector<std::string>>(
         name,
         [&o, name](const std::vector<std::string>& values) {
           for (const std::string& v : values) {
             o.forward.push_back(name);
             o.forward.push_back(v);
           }
         },
         text)
      ->type_name(value)
      ->allow_extra_args(false);
}
void flag_handed_on(CLI::App& app, Options& o, const std::string& name, const std::string& text) {
  app.add_flag_callback(
      name, [&o, name] { o.forward.push_back(name); }, text);
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

void add_imports(CLI::App& app, Options& o) {
  app.add_option("-I", o.import_paths, "folder with files that the model file imports; may be given again")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("--allow-extension", o.allow_extension, "folder whose C++ the operations of a model file may use")
      ->type_name("DIR")
      ->allow_extra_args(false);
}
void add_config(CLI::App& app, Options& o) {
  app.add_option("--config", o.config, "config.json or YAML (default: the checkpoint's)")->type_name("FILE");
  app.add_option("--set", o.set, "supplies or overrides a value of the configuration; may be given again")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_imports(app, o);
}
CLI::Option* add_checkpoint(CLI::App& app, Options& o, const std::string& text) {
  return app.add_option("--checkpoint", o.checkpoint, text)->type_name("PATH");
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
void add_threads(CLI::App& app, Options& o) {
  app.add_option("--threads", o.threads, "0: one a core (0)")->type_name("N")->check(CLI::Range(0, 1024));
}
void add_backend(CLI::App& app, Options& o, const std::string& text) {
  app.add_option("--backend", o.backend, text)->type_name("NAME")->check(one_of({"cpu", "vulkan"}));
  app.add_option("--device", o.device,
                 "cpu, vulkan or vulkan:N, as `modelc devices` lists them; or which modules are where, the first that matches counts: "
                 "model.layers[0..16]=vulkan:0,cpu (as the file's `place` says, else cpu)")
      ->type_name("DEVICES");
}
// All that `run`, `verify` and `bench` share but their results.
void add_run(CLI::App& app, Options& o, const std::string& checkpoint) {
  heading(app, model_heading);
  add_checkpoint(app, o, checkpoint)->required();
  add_config(app, o);
  each_handed_on(app, o, "--adapter", "DIR", "a low-rank adapter to merge into the weights; may be given again");
  add_load(app, o);
  flag_handed_on(app, o, "--no-pack", "load from the checkpoint, though a pack lies beside it");
  heading(app, where_heading);
  app.add_option("--mode", o.mode,
                 "exact: all in f32; fast: as the policy says, activations of quantised weights in 13 bits, keys and values in f16 "
                 "(run, bench: fast where the device has it; verify: exact)")
      ->type_name("MODE")
      ->check(one_of({"exact", "fast"}));
  add_backend(app, o, "cpu, or vulkan: its first device, where `place` and --device name none (cpu)");
  flag_handed_on(app, o, "--no-device-graph", "on a GPU: record every step anew, do not submit one again");
  add_threads(app, o);
  app.add_option("--isa", o.isa, "portable, avx2, avx512 or avx512vnni (the best there is)")->type_name("NAME");
}
void add_json(CLI::App& app, Options& o, const std::string& text) {
  heading(app, output_heading);
  app.add_flag("--json", o.json, text);
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
  CLI::App app("modelc: turns a model's description into native code", "modelc");
  app.formatter(main_program::help_layout());
  app.set_version_flag("--version", std::string("modelc ") + settings::version, "versions of modelc and of what it is made of");
  app.footer("modelc COMMAND --help lists the options of a command.");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });

  CLI::App* check = command(app, "check", "check a model file, with a checkpoint against its headers", o, "FILE.model");
  heading(*check, model_heading);
  add_checkpoint(*check, o, "folder, .safetensors files or .gguf; no weight is read");
  add_config(*check, o);
  check->add_flag("--no-strict", o.no_strict, "allow tensors that the model does not have");
  check->add_flag("--auto-cast", o.auto_cast, "f32 and bf16 for each other where a weight declares its type");
  add_trailing(*check, o);
  add_json(*check, o, "messages for a program, one object a line");

  CLI::App* build = command(app, "build", "write C++ for a model and a configuration", o, "FILE.model");
  heading(*build, model_heading);
  add_config(*build, o);
  add_checkpoint(*build, o, "take the configuration from it, and check its headers");
  add_trailing(*build, o);
  heading(*build, "what is written");
  build->add_option("-o,--output", o.out, "folder for the files")->type_name("DIR")->required();
  build->add_option("--backend", o.backend, "cpu, or cpu,vulkan: also shaders (cpu)")->type_name("NAMES");
  build->add_option("--name", o.name, "class (default: the model's name)")->type_name("CLASS");
  build->add_option("--namespace", o.name_space, "as a or a::b (default: the file's name)")->type_name("NS");
  build->add_flag("--main", o.stock_main, "also FILE_main.cpp: a program that generates, verifies, measures");
  build->add_flag("--c-api", o.c_api, "also FILE_c.h and FILE_c.cpp: the class for runtime/c/modelc.h");
  build->add_option("--depfile", o.depfile, "also what was read, for make and ninja")->type_name("FILE");
  build->add_option("--encodings", o.encodings, "encodings of weights to choose shaders by")->type_name("LIST");
  build->add_flag("--inline", o.inline_all, "one function of the whole model");
  heading(*build, output_heading);
  build->add_flag("--full-paths", o.full_paths, "name files in messages by their path, for editors and build systems");
  add_json(*build, o, "messages for a program");

  CLI::App* run = command(app, "run", "compile a model and generate text", o, "FILE.model");
  heading(*run, "what to go on from, one of");
  handed_on(*run, o, "--prompt", "TEXT", "text, as it stands");
  handed_on(*run, o, "--chat", "TEXT", "a message, through the checkpoint's chat template");
  handed_on(*run, o, "--tokens", "IDS", "token ids: 1,2,3");
  heading(*run, "how it goes on");
  handed_on(*run, o, "--system", "TEXT", "with --chat: what the assistant is to be");
  handed_on(*run, o, "-n", "N", "new tokens at most (128)");
  handed_on(*run, o, "--temperature", "X", "0: the best token each time (0)");
  handed_on(*run, o, "--top-k", "K", "draw from the k best (0: all)");
  handed_on(*run, o, "--top-p", "P", "draw from the best with probability p together (1: all)");
  handed_on(*run, o, "--min-p", "P", "draw from those with p times the best's probability (0: all)");
  handed_on(*run, o, "--typical-p", "P", "draw from the most typical with probability p together (1: all)");
  handed_on(*run, o, "--repetition-penalty", "X", "above 1: seen tokens become less likely (1)");
  handed_on(*run, o, "--frequency-penalty", "X", "taken from a token for each time it was seen (0)");
  handed_on(*run, o, "--presence-penalty", "X", "taken once from a seen token (0)");
  each_handed_on(*run, o, "--logit-bias", "ID=X", "added to a token's logit: 42=-1.5; may be given again");
  each_handed_on(*run, o, "--stop", "TEXT", "a string that ends the text; may be given again");
  flag_handed_on(*run, o, "--ignore-eos", "go on after the token that ends a text");
  handed_on(*run, o, "--seed", "N", "of the random numbers (0)");
  handed_on(*run, o, "--num-return-sequences", "N", "answers to the same prompt, at once (1)");
  add_run(*run, o, "folder, .safetensors files or .gguf");
  add_json(*run, o, "messages and results for a program");
  flag_handed_on(*run, o, "--show-tokens", "ids instead of text");
  handed_on(*run, o, "--trace", "PATTERN", "values whose names match: 'model.layers.*.self_attn', '**'");
  handed_on(*run, o, "--export", "FILE", "with --trace: write them to this .safetensors");

  CLI::App* verify = command(app, "verify", "compare with a reference's tensors", o, "FILE.model");
  heading(*verify, "what it is compared with");
  handed_on(*verify, o, "--expected", "FILE", ".safetensors with inputs, outputs and stages")->required();
  handed_on(*verify, o, "--within", "X", "largest absolute difference (1e-4)");
  handed_on(*verify, o, "--within-kl", "X", "largest KL divergence of a row of logits, instead of --within for outputs");
  handed_on(*verify, o, "--within-kl-99", "X", "what the KL divergence of 99 % of the rows may be");
  handed_on(*verify, o, "--within-mean-kl", "X", "what its mean over the rows may be");
  handed_on(*verify, o, "--chunk", "N", "tokens of a sequence in one call (0: all)");
  add_run(*verify, o, "folder, .safetensors files or .gguf");
  add_json(*verify, o, "messages and results for a program");

  CLI::App* bench = command(app, "bench", "measure prefill and decode, beside what this machine can do at most", o, "FILE.model");
  heading(*bench, "what is measured");
  handed_on(*bench, o, "-p", "N", "tokens of the prompt (512)");
  handed_on(*bench, o, "-n", "N", "tokens generated (64)");
  handed_on(*bench, o, "-c", "N", "positions reserved (prompt and tokens)");
  handed_on(*bench, o, "-r", "N", "repetitions (5)");
  add_run(*bench, o, "folder, .safetensors files or .gguf; or `random`, with --config");
  add_json(*bench, o, "messages and results for a program");
  handed_on(*bench, o, "--profile", "FILE", "the time of each operation, also drawn to this .svg");

  CLI::App* test = command(app, "test", "run the test blocks of a model file", o, "FILE.model");
  heading(*test, where_heading);
  add_imports(*test, o);
  test->add_option("--mode", o.mode, "exact; or fast: the reference evaluator and the compiled model follow the policy (exact)")
      ->type_name("MODE")
      ->check(one_of({"exact", "fast"}));
  add_threads(*test, o);
  test->add_option("--isa", o.isa, "portable, avx2, avx512 or avx512vnni (the best there is)")->type_name("NAME");
  add_json(*test, o, "results for a program, one object a line");

  CLI::App* inspect = command(app, "inspect", "show a checkpoint, or a model's modules and weights", o, "PATH");
  heading(*inspect, model_heading);
  add_config(*inspect, o);
  add_trailing(*inspect, o);
  heading(*inspect, output_heading);
  inspect->add_flag("--all", o.every_tensor, "a line for each tensor");
  add_json(*inspect, o, "for a program");

  CLI::App* convert = app.add_subcommand("convert", "write a checkpoint as another format, or in another encoding");
  heading(*convert, "what is read and what is written");
  convert
      ->add_option(
          "FILE.model IN OUT", o.files,
          "the model; its checkpoint (a folder, a .gguf, or `random`: random weights for --config); FILE.gguf or a folder to write")
      ->required()
      ->expected(3);
  convert->add_option("--to", o.to, "gguf or safetensors (default: gguf where OUT ends with .gguf)")
      ->type_name("FORMAT")
      ->check(one_of({"gguf", "safetensors"}));
  convert->add_option("--quantize", o.quantize, "encoding of the matrices: q8_0, q4_k, bf16, …; or `rules`, the model's quantize block")
      ->type_name("TYPE");
  convert->add_option("--max-shard-size", o.max_shard_size, "bytes of one .safetensors: 5GB, 300MB; 0 for one file (5GB)")
      ->type_name("SIZE");
  convert->add_flag("--no-tokenizer", o.no_tokenizer, "leave the tokenizer out");
  convert->add_option("--seed", o.seed, "of random weights (1)")->type_name("N");
  heading(*convert, model_heading);
  add_config(*convert, o);
  convert->add_flag("--no-mmap", o.no_mmap, "read the weights into memory instead of mapping them");
  convert->add_flag("--no-strict", o.no_strict, "allow tensors that the model does not have, and leave them out");
  add_trailing(*convert, o);
  heading(*convert, where_heading);
  add_threads(*convert, o);
  add_json(*convert, o, "the result for a program");

  CLI::App* pack = app.add_subcommand("pack", "write what a load makes of a checkpoint beside it, for later loads to map");
  heading(*pack, model_heading);
  pack->add_option("FILE.model CHECKPOINT", o.files, "the model; its checkpoint, a folder or a file")->required()->expected(2);
  add_config(*pack, o);
  add_load(*pack, o);
  flag_handed_on(*pack, o, "--full-hash", "compare every byte of the files, not size, time and header alone");
  heading(*pack, where_heading);
  add_backend(*pack, o, "cpu or vulkan: whose later loads map it (cpu)");
  add_threads(*pack, o);
  add_json(*pack, o, "the result for a program");

  CLI::App* fmt = command(app, "fmt", "write model files in their usual layout", o, "FILE.model", true);
  heading(*fmt, "options");
  fmt->add_flag("--check", o.check, "write nothing; name the files that would change, and end with status 1");
  fmt->add_option("--columns", o.columns, "break lines that are longer (120)")->type_name("N")->check(CLI::Range(40, 1000));
  fmt->add_flag("--json", o.json, "messages for a program");

  CLI::App* flatten =
      command(app, "flatten", "print a model and all that it needs as one text without imports and inheritance", o, "FILE.model");
  heading(*flatten, "options");
  flatten->add_flag("--json", o.json, "messages for a program");

  CLI::App* dump =
      command(app, "dump", "print a stage of the compiler as text, which dump and build read back", o, "FILE.model|.graph|.plan");
  heading(*dump, output_heading);
  dump->add_option("--stage", o.stage, "ast, tree (the same with its nodes named), program, graph or plan")
      ->type_name("STAGE")
      ->required()
      ->check(one_of({"ast", "tree", "program", "graph", "plan"}));
  dump->add_option("--root", o.root, "one module instead of the model: \"Linear(5, 10)\"")->type_name("MODULE");
  dump->add_flag("--json", o.json, "messages for a program");
  heading(*dump, model_heading);
  add_config(*dump, o);
  add_checkpoint(*dump, o, "take the configuration from it");

  CLI::App* devices = app.add_subcommand("devices", "list what can run models here, with limits, and what of a model would fit");
  heading(*devices, "which model would fit");
  devices->add_option("FILE.model", o.files, "the model, with --checkpoint; no weight is read")->expected(0, 1);
  add_checkpoint(*devices, o, "folder, .safetensors files or .gguf");
  add_config(*devices, o);
  devices->add_option("-c", o.context, "positions of one sequence (the model's context, at most 4096)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  devices->add_flag("--no-strict", o.no_strict, "allow tensors that the model does not have");
  devices->add_flag("--auto-cast", o.auto_cast, "f32 and bf16 for each other where a weight declares its type");
  add_trailing(*devices, o);
  add_json(*devices, o, "for a program, one object a line");

  command(app, "explain", "the long form of a message", o, "CODE");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) { return version_command(); } catch (const CLI::CallForHelp&) {
    CLI::App* asked = &app;
    for (CLI::App* s : app.get_subcommands()) asked = s;
    std::fputs(asked->help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& e) {
    const CLI::App* at = &app;
    for (const CLI::App* s : app.get_subcommands()) at = s;
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      std::vector<std::string> commands;
      for (CLI::App* s : app.get_subcommands({})) commands.push_back(s->get_name());
      const std::string near = diag::did_you_mean(argv[1], commands);
      std::fprintf(stderr, "error: there is no command \"%.60s\"\n  help: %smodelc --help says what there is\n", argv[1],
                   near.empty() ? "" : (near + " ").c_str());
      return 2;
    }
    const main_program::UnknownOption unknown = main_program::unknown_option(*at);
    const std::string near = unknown.given.empty() ? "" : diag::did_you_mean(unknown.given, unknown.known);
    std::string what = at == &app ? "no command is given" : e.what();
    if (!unknown.given.empty()) what = "there is no option " + quote(unknown.given, 60);
    std::fprintf(stderr, "error: %s\n  help: %s%s --help says what there is\n", what.c_str(), near.empty() ? "" : (near + " ").c_str(),
                 main_program::command_path(*at).c_str());
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
