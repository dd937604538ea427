#include "runtime/main/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>

#include "runtime/base/build_info.h"
#include "runtime/base/strings.h"
#include "runtime/device/place_text.h"
#include "runtime/main/help.h"

namespace modelc::main_program {

namespace {

bool parse_tokens(const std::string& text, std::vector<std::int32_t>& to) {
  for (std::string_view part : split(text, ',')) {
    const auto v = parse_int(trim(part));
    if (!v || *v < 0 || *v > INT32_MAX) return false;
    to.push_back(static_cast<std::int32_t>(*v));
  }
  return !to.empty();
}

bool parse_bias(std::string_view text, std::vector<std::pair<std::int32_t, float>>& to) {
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos) return false;
  const auto id = parse_int(text.substr(0, sign));
  const std::string_view number = text.substr(sign + 1);
  const auto value = number == "-inf" ? -std::numeric_limits<double>::infinity() : parse_double(number);
  if (!id || *id < 0 || *id > INT32_MAX || !value) return false;
  to.emplace_back(static_cast<std::int32_t>(*id), static_cast<float>(*value));
  return true;
}

void heading(CLI::App& app, const std::string& text) { app.option_defaults()->group(text); }

// What the texts of options are, before they are read.
struct Texts {
  std::string mode, device;
};

void add_shared(CLI::App& app, Options& o, Texts& texts) {
  heading(app, "the weights");
  app.add_option("--checkpoint", o.checkpoint, "folder with config.json and *.safetensors; .safetensors files; or a .gguf")
      ->type_name("PATH")
      ->required()
      ->allow_extra_args(false);
  app.add_option("--adapter", o.load.adapters, "a low-rank adapter (PEFT's folder) to merge into the weights; may be given again")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_flag("--no-mmap", o.load.no_mmap, "read the weights into memory instead of mapping them");
  app.add_flag_callback(
      "--no-strict", [&o] { o.load.strict = false; }, "allow tensors that the model does not have");
  app.add_flag("--auto-cast", o.load.auto_cast, "f32 and bf16 for each other where a weight declares its type");
  app.add_flag("--allow-trailing-bytes", o.open.allow_trailing, "accept bytes of a weight file that no tensor covers");
  app.add_flag_callback(
      "--no-pack", [&o] { o.load.pack = PackUse::none; }, "load from the checkpoint, though a pack lies beside it");
  heading(app, "where and how it runs");
  app.add_option("--mode", texts.mode,
                 "exact: all in f32; fast: as the policy says, activations of quantised weights in 13 bits, keys and values in f16 "
                 "(to generate and measure: fast where the device has it; else exact)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"exact", "fast"}));
  app.add_option("--device", texts.device,
                 "cpu, vulkan or vulkan:N; or which modules are where, the first that matches counts: model.layers[0..16]=vulkan:0,cpu "
                 "(as the model's `place` says, else cpu)")
      ->type_name("DEVICES");
  app.add_flag_callback(
      "--no-device-graph", [&o] { o.load.vulkan.device_graph = false; }, "on a GPU: record every step anew, do not submit one again");
  app.add_option("--threads", o.load.cpu.threads, "0: one a core (0)")->type_name("N")->check(CLI::Range(0, 1024));
  app.add_option("--isa", o.load.cpu.isa, "portable, avx2, avx512 or avx512vnni (the best there is)")->type_name("NAME");
  heading(app, "what is printed");
  app.add_flag("--json", o.json, "results and errors for a program");
}

}  // namespace

std::optional<int> parse(int argc, const char* const* argv, const ModelFactory& factory, Options& o) {
  const std::string program = argc > 0 ? argv[0] : factory.name;
  CLI::App app(std::string(factory.name) + " from " + factory.file + ", as a program: generates text, verifies, measures (modelc " +
                   factory.version + ")",
               program);
  app.formatter(help_layout());
  app.option_defaults()->always_capture_default(false);
  std::string prompt, tokens, chat, system;
  Texts texts;
  std::vector<std::string> biases;
  std::vector<std::string> trace;
  const auto add_generate = [&](CLI::App& a) {
    heading(a, "what to go on from, one of");
    a.add_option("--prompt", prompt, "text, as it stands")->type_name("TEXT");
    a.add_option("--chat", chat, "a message, through the checkpoint's chat template")->type_name("TEXT");
    a.add_option("--tokens", tokens, "token ids: 1,2,3")->type_name("IDS");
    heading(a, "how it goes on");
    a.add_option("--system", system, "with --chat: what the assistant is to be")->type_name("TEXT");
    a.add_option("-n", o.count, "new tokens at most (128)")->type_name("N")->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
    a.add_option("--temperature", o.sampler.temperature, "0 takes the best token each time (0)")->type_name("X");
    a.add_option("--top-k", o.sampler.top_k, "draw from the k best (0: all)")->type_name("K");
    a.add_option("--top-p", o.sampler.top_p, "draw from the best that together have probability p (1: all)")->type_name("P");
    a.add_option("--min-p", o.sampler.min_p, "draw from those with p times the best one's probability (0: all)")->type_name("P");
    a.add_option("--typical-p", o.sampler.typical_p, "draw from the most typical that together have probability p (1: all)")
        ->type_name("P");
    a.add_option("--repetition-penalty", o.sampler.repetition_penalty, "above 1: tokens seen before become less likely (1)")
        ->type_name("X");
    a.add_option("--frequency-penalty", o.sampler.frequency_penalty, "taken from a token for each time it was seen before (0)")
        ->type_name("X");
    a.add_option("--presence-penalty", o.sampler.presence_penalty, "taken once from a token seen before (0)")->type_name("X");
    a.add_option("--logit-bias", biases, "added to a token's logit: 42=-1.5, or 42=-inf to forbid it; may be given again")
        ->type_name("ID=X")
        ->allow_extra_args(false);
    a.add_option("--stop", o.stop, "a string that ends the text; may be given again")->type_name("TEXT")->allow_extra_args(false);
    a.add_flag("--ignore-eos", o.ignore_eos, "go on after the token that ends a text");
    a.add_option("--seed", o.sampler.seed, "of the random numbers (0)")->type_name("N");
    a.add_option("--num-return-sequences", o.answers, "answers to the same prompt, drawn at once from seeds one after another (1)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
    add_shared(a, o, texts);
    a.add_flag("--show-tokens", o.show_tokens, "token ids instead of text");
    a.add_option("--trace", trace, "values whose names match: 'model.layers.*.self_attn', '**'")->type_name("PATTERN");
    a.add_option("--export", o.export_path, "with --trace: write the values to this .safetensors")->type_name("FILE");
  };

  CLI::App* generate = app.add_subcommand("generate", "generate text; what is done when no command is named");
  add_generate(*generate);
  CLI::App* verify = app.add_subcommand("verify", "compare with a reference's tensors");
  double within_kl = -1, within_kl_99 = -1, within_mean_kl = -1;
  heading(*verify, "what it is compared with");
  verify->add_option("--expected", o.expected, ".safetensors with inputs, outputs and stages")->type_name("FILE")->required();
  verify->add_option("--within", o.verify.within, "largest absolute difference (1e-4)")->type_name("X");
  verify->add_option("--within-kl", within_kl, "largest KL divergence of a row of logits, instead of --within for outputs")->type_name("X");
  verify->add_option("--within-kl-99", within_kl_99, "what the KL divergence of 99 % of the rows may be")->type_name("X");
  verify->add_option("--within-mean-kl", within_mean_kl, "what its mean over the rows may be")->type_name("X");
  verify->add_option("--chunk", o.verify.chunk, "tokens of a sequence in one call (0: all at once)")->type_name("N");
  add_shared(*verify, o, texts);
  CLI::App* same = app.add_subcommand("same", "compare runs that must agree: 'prefill(24)' 'prefill(12)+decode(12)'");
  heading(*same, "what is compared");
  same->add_option("RUN", o.runs, "two runs or more")->required();
  same->add_option("--inputs", o.inputs, ".safetensors with inputs by name, instead of numbers by chance")->type_name("FILE");
  same->add_option("--within", o.within, "largest absolute difference of the results (1e-5)")->type_name("X");
  same->add_option("--seed", o.seed, "of the tokens (1)")->type_name("N");
  add_shared(*same, o, texts);
  CLI::App* bench = app.add_subcommand("bench", "measure prefill and decode, beside what this machine can do at most");
  heading(*bench, "what is measured");
  bench->add_option("-p", o.bench_prompt, "tokens of the prompt (512)")->type_name("N")->check(CLI::Range(1, 1 << 24));
  bench->add_option("-n", o.bench_tokens, "tokens generated (64)")->type_name("N")->check(CLI::Range(1, 1 << 24));
  bench->add_option("-c", o.bench_context, "positions reserved (prompt and tokens)")->type_name("N")->check(CLI::Range(0, 1 << 24));
  bench->add_option("-r", o.bench_repeat, "repetitions (5)")->type_name("N")->check(CLI::Range(1, 1000));
  add_shared(*bench, o, texts);
  bench->add_option("--profile", o.bench_profile, "the time of each operation, also drawn to this .svg")->type_name("FILE");
  CLI::App* info = app.add_subcommand("info", "what the checkpoint holds and the model is made of");
  add_shared(*info, o, texts);
  CLI::App* pack = app.add_subcommand("pack", "write what a load makes of the checkpoint beside it, for later loads to map");
  add_shared(*pack, o, texts);
  heading(*pack, "the weights");
  pack->add_flag("--full-hash", o.load.pack_hash, "compare every byte of the files, not size, time and header alone");
  app.require_subcommand(0, 1);

  // Without a command the options are generate's.
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  const std::string first = args.empty() ? "" : args[0];
  if (first == "--version") {
    std::printf("%s from %s, written by modelc %s; runtime %s\n", factory.name, factory.file, factory.version, runtime_version);
    for (const auto& [what, version] : runtime_built_with()) std::printf("%s %s\n", what.c_str(), version.c_str());
    return 0;
  }
  const bool help = first == "-h" || first == "--help";
  const auto commands = app.get_subcommands({});
  const bool named = std::any_of(commands.begin(), commands.end(), [&](const CLI::App* c) { return c->get_name() == first; });
  if (!first.empty() && first[0] != '-' && !named) {
    std::vector<std::string> names;
    for (const CLI::App* c : commands) names.push_back(c->get_name());
    const auto near = nearest(first, names);
    std::fprintf(stderr, "error: there is no command %s\n  help: %s%s --help says what there is\n", quote(first, 60).c_str(),
                 near ? ("did you mean `" + *near + "`? ").c_str() : "", program.c_str());
    return 2;
  }
  if (!help && !named) args.insert(args.begin(), "generate");
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  const CLI::App* at = &app;
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    for (const CLI::App* c : app.get_subcommands()) at = c;
    std::fputs(at->help().c_str(), stdout);
    // Most calls name no command.
    if (at == &app) std::fputs(help_of_options(*generate).c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& e) {
    for (const CLI::App* c : app.get_subcommands()) at = c;
    const UnknownOption unknown = unknown_option(*at);
    const auto near = unknown.given.empty() ? std::nullopt : nearest(unknown.given, unknown.known);
    const std::string what = unknown.given.empty() ? e.what() : "there is no option " + quote(unknown.given, 60);
    std::fprintf(stderr, "error: %s\n  help: %s%s --help lists the options\n", what.c_str(),
                 near ? ("did you mean `" + *near + "`? ").c_str() : "", (named ? command_path(*at) : program).c_str());
    return 2;
  }

  o.command = verify->parsed()  ? Command::verify
              : same->parsed()  ? Command::same
              : bench->parsed() ? Command::bench
              : info->parsed()  ? Command::info
              : pack->parsed()  ? Command::pack
                                : Command::generate;
  if (!texts.mode.empty()) o.mode = texts.mode == "fast" ? Mode::fast : Mode::exact;
  if (!texts.device.empty()) {
    auto place = read_placement(texts.device);
    if (!place) {
      fail(place.error());
      return 2;
    }
    o.load.place = std::move(*place);
  }
  if (o.command == Command::pack) {
    if (o.load.pack == PackUse::none) {
      std::fputs("error: --no-pack: pack writes one\n", stderr);
      return 2;
    }
    o.load.pack = PackUse::write;
  }
  if (within_kl >= 0) o.verify.within_kl = within_kl;
  if (within_kl_99 >= 0) o.verify.within_kl_99 = within_kl_99;
  if (within_mean_kl >= 0) o.verify.within_mean_kl = within_mean_kl;
  if (o.command == Command::generate) {
    if (generate->count("--chat") > 0) o.chat = chat;
    if (generate->count("--system") > 0) o.system = system;
    if (o.system && !o.chat) {
      std::fputs("error: --system needs --chat, the message that it stands before\n", stderr);
      return 2;
    }
    for (const std::string& bias : biases)
      if (!parse_bias(bias, o.sampler.logit_bias)) {
        std::fprintf(stderr, "error: --logit-bias %s: expected a token id and a number, as in 42=-1.5\n", printable(bias).c_str());
        return 2;
      }
    if (generate->count("--prompt") > 0) o.prompt = prompt;
    if (generate->count("--tokens") > 0 && !parse_tokens(tokens, o.tokens.emplace())) {
      std::fprintf(stderr, "error: --tokens %s: expected token ids, as in 1,2,3\n", printable(tokens).c_str());
      return 2;
    }
    if ((o.prompt ? 1 : 0) + (o.tokens ? 1 : 0) + (o.chat ? 1 : 0) > 1) {
      std::fputs("error: --prompt, --chat and --tokens exclude each other\n", stderr);
      return 2;
    }
    if (!o.prompt && !o.tokens && !o.chat) {
      std::fputs("error: nothing to go on from\n  help: --prompt TEXT, --chat TEXT or --tokens 1,2,3\n", stderr);
      return 2;
    }
    if (auto s = validate(o.sampler); !s) {
      fail(s.error());
      return 2;
    }
    if (o.answers > 1 && o.sampler.temperature == 0) {
      std::fputs(
          "error: --num-return-sequences without --temperature would give the same answer each time\n"
          "  help: --temperature 0.8 draws them\n",
          stderr);
      return 2;
    }
    o.trace = trace;
    o.trace_all = generate->count("--trace") > 0;
    if (!o.export_path.empty() && !o.trace_all) {
      std::fputs("error: --export needs --trace, which says what to write\n", stderr);
      return 2;
    }
  }
  return std::nullopt;
}

}  // namespace modelc::main_program
