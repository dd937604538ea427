// check, inspect, dump, explain: what looks and writes nothing.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "codegen/driver/commands.h"
#include "codegen/driver/pipeline.h"
#include "codegen/plan/printer.h"
#include "frontend/graph/printer.h"
#include "frontend/sema/flatten.h"
#include "frontend/syntax/dump.h"
#include "frontend/syntax/parser.h"
#include "frontend/syntax/printer.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/inspect.h"
#include "runtime/checkpoint/open.h"

namespace modelc::driver {

namespace code = diag::code;

int check_command(const Options& o) {
  Session s(o);
  if (!load_model(s, o.files[0])) {
    s.report();
    return s.status();
  }
  const auto checkpoint = open_checkpoint_of(s);
  const auto config = config_of(s, checkpoint.get());
  if (s.sink.has_errors()) {
    s.report();
    return s.status();
  }
  if (checkpoint && !config)
    s.sink.error(code::config_not_given, o.checkpoint.front(), "the checkpoint has no config.json, and --config is not given")
        .help("--config config.json; without it only the model file itself can be checked");
  const auto program = analyze_model(s, config ? &*config : nullptr);
  std::vector<std::string> notes;
  if (program && checkpoint) notes = check_weights(s, program->graph, *checkpoint);
  if (program) check_placement(s, program->graph, nullptr);
  const bool good = s.report();
  if (!good || o.json) return s.status();
  if (program) {
    notes.insert(notes.begin(), program->facts.begin(), program->facts.end());
    notes.insert(notes.begin(), program->notes.begin(), program->notes.end());
  }
  print_notes(notes);
  if (!program) {
    std::printf("%s: no mistake found without a configuration; sizes and shapes are checked with --config or --checkpoint\n",
                s.sources.display_name(s.main).c_str());
    return 0;
  }
  std::string line = summary(program->graph);
  if (checkpoint) line += ", " + human_bytes(checkpoint->total_bytes()) + " in " + counted(checkpoint->files().size(), "file");
  std::printf("%s: %s\n", program->graph.name.c_str(), line.c_str());
  return 0;
}

namespace {

bool is_model_file(const std::string& path) { return path.size() > 6 && path.ends_with(".model"); }

void print_tree(const graph::Module& m, graph::ClassId id, const std::string& indent) {
  const graph::Class& c = m.of(id);
  const auto shape = [&](const graph::Type& t) {
    std::string s = "[";
    for (std::size_t i = 0; i < t.shape.size(); ++i) s += (i ? ", " : "") + m.dims.text(t.shape[i]);
    return s + "]";
  };
  for (const auto& [kind, index] : c.order) {
    if (kind == 'w') {
      const auto& w = c.weights[index];
      std::printf("%s%s %s%s%s\n", indent.c_str(), w.path.c_str(), shape(w.type).c_str(),
                  w.shape_text.empty() || w.shape_text == shape(w.type) ? "" : (" = " + w.shape_text).c_str(),
                  w.default_value ? (" default " + shortest(*w.default_value)).c_str() : "");
    } else if (kind == 's') {
      const auto& st = c.states[index];
      std::printf("%sstate %s: %s heads of %s\n", indent.c_str(), st.name.c_str(),
                  std::to_string(st.sizes.empty() ? 0 : st.sizes[0]).c_str(),
                  std::to_string(st.sizes.size() < 2 ? 0 : st.sizes[1]).c_str());
    } else if (kind == 'm') {
      const auto& child = c.children[index];
      for (std::size_t i = 0; i < child.elements.size();) {
        std::size_t end = i + 1;
        while (end < child.elements.size() && child.elements[end] == child.elements[i]) ++end;
        const std::string number = !child.list ? "" : end - i == 1 ? "." + std::to_string(i) : fmt::format(".{{{}..{}}}", i, end - 1);
        std::printf("%s%s%s: %s\n", indent.c_str(), child.path.c_str(), number.c_str(), m.of(child.elements[i]).definition.c_str());
        print_tree(m, child.elements[i], indent + "  ");
        i = end;
      }
    }
  }
}

}  // namespace

int inspect_command(const Options& o) {
  if (is_model_file(o.files[0])) {
    Session s(o);
    if (load_model(s, o.files[0])) {
      const auto config = config_of(s, nullptr);
      if (!config && !s.sink.has_errors())
        s.sink.error(code::config_not_given, o.files[0], "the modules and weights of a model depend on its configuration")
            .help("--config config.json");
      if (config) {
        const auto program = analyze_model(s, &*config);
        if (!s.report() || !program) return std::max(1, s.status());
        std::printf("%s: %s\n", program->graph.name.c_str(), summary(program->graph).c_str());
        print_tree(program->graph, program->graph.root, "  ");
        return 0;
      }
    }
    s.report();
    return s.status();
  }
  auto index = open_checkpoint(o.files[0], {.allow_trailing = o.allow_trailing});
  if (!index) {
    if (o.json) {
      JsonObject j;
      j.set("severity", Json("error"));
      j.set("kind", Json(index.error().kind));
      j.set("message", Json(index.error().message));
      j.set("file", Json(o.files[0]));
      JsonArray notes;
      for (const std::string& note : index.error().notes) notes.emplace_back(note);
      j.set("notes", Json(std::move(notes)));
      j.set("help", Json(index.error().help));
      std::printf("%s\n", dump(Json(std::move(j))).c_str());
    } else {
      std::fprintf(stderr, "error: %s\n", index.error().text().c_str());
    }
    return 1;
  }
  const std::string text = o.json ? inspect_json(*index) : inspect_text(*index, {.every_tensor = o.every_tensor});
  std::fputs(text.c_str(), stdout);
  if (!text.empty() && text.back() != '\n') std::fputc('\n', stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

namespace {

// A stage that lies before what the file holds. Gives the exit status.
int too_late(Session& s, const Options& o) {
  const bool plan = is_plan_text(o.files[0]);
  s.sink.error(code::bad_option, "--stage", fmt::format("--stage {}: a {}'s text comes after that stage", o.stage, plan ? "plan" : "graph"))
      .help(plan ? "--stage plan" : "--stage graph or plan");
  s.report();
  return 1;
}

// The model without imports and inheritance, which reads back as a model file, and behind it in comments what this
// configuration makes of it.
std::optional<std::string> program_text(Session& s, const sema::Program& program) {
  auto text = sema::flatten(s.sources, s.imports, s.sink);
  if (!text) return std::nullopt;
  *text += "\n";
  for (const std::string_view line : split(program.resolved, '\n'))
    if (!line.empty()) (*text += "// ").append(line) += "\n";
  return text;
}

}  // namespace

int dump_command(const Options& o) {
  Session s(o);
  if (o.stage == "ast" || o.stage == "tree") {
    if (is_graph_text(o.files[0]) || is_plan_text(o.files[0])) return too_late(s, o);
    const auto file = diag::load_source(s.sources, o.files[0], std::filesystem::path(o.files[0]).filename().string(), s.sink);
    const auto tree = file ? syntax::parse(*file, s.sources, s.sink) : nullptr;
    if (!s.report() || !tree) return 1;
    std::fputs((o.stage == "ast" ? syntax::print(*tree) : syntax::dump(*tree)).c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : 1;
  }
  const auto stages = [&]() -> std::optional<std::string> {
    if (is_plan_text(o.files[0])) {
      if (o.stage != "plan") return too_late(s, o), std::nullopt;
      const auto planned = load_plan(s, o.files[0]);
      return planned ? std::optional(plan::print(*planned, true)) : std::nullopt;
    }
    if (is_graph_text(o.files[0])) {
      if (o.stage == "program") return too_late(s, o), std::nullopt;
      const auto program = load_graph(s, o.files[0]);
      if (!program) return std::nullopt;
      if (o.stage == "graph") return graph::print(program->graph);
      const auto planned = plan_model(s, *program);
      return planned ? std::optional(plan::print(*planned, true)) : std::nullopt;
    }
    if (!load_model(s, o.files[0])) return std::nullopt;
    const auto checkpoint = open_checkpoint_of(s);
    const auto config = config_of(s, checkpoint.get());
    if (s.sink.has_errors()) return std::nullopt;
    if (!config && o.root.empty()) {
      s.sink.error(code::config_not_given, o.files[0], fmt::format("stage {} depends on a configuration", o.stage))
          .help("--config config.json, --checkpoint FOLDER, or --root for one module");
      return std::nullopt;
    }
    const auto program = analyze_model(s, config ? &*config : nullptr);
    if (!program) return std::nullopt;
    if (o.stage == "program") return program_text(s, *program);
    if (o.stage == "graph") return graph::print(program->graph);
    const auto planned = plan_model(s, *program);
    if (!planned) return std::nullopt;
    return plan::print(*planned, true);
  };
  const auto text = stages();
  if (!s.report() || !text) return std::max(1, s.status());
  std::fputs(text->c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int explain_command(const Options& o) {
  const diag::Code* found = diag::find_code(o.files[0]);
  if (!found) {
    std::vector<std::string> codes;
    for (const diag::Code& c : diag::all_codes()) codes.emplace_back(c.text);
    const std::string near = diag::did_you_mean(o.files[0], codes);
    std::fprintf(stderr, "error: no message has the code %s\n  help: %s\n", quote(o.files[0]).c_str(),
                 near.empty() ? "codes look like E0312" : near.c_str());
    return 2;
  }
  std::fputs(diag::explain(*found).c_str(), stdout);
  return 0;
}

}  // namespace modelc::driver
