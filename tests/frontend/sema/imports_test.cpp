// Imports: where files are found, what they give, circles, names that two of them declare.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "frontend/diagnostics/render.h"
#include "frontend/syntax/parser.h"
#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("modelc_imports_" + std::to_string(::getpid()))) { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& name, std::string_view text) {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << "language 1\n" << text;
  }
  fs::path path;
};

}  // namespace

TEST_CASE("an import is a file beside the importing one") {
  Session s("import nn.linear\nimport other");
  s.file("nn/linear.model", "import shared  module Linear(n: dim) { }").file("other.model", "fn twice(x) = 2 * x");
  s.file("nn/shared.model", "fn hidden(x) = x");
  CHECK(s.eval("twice(2)").as_int() == 4);
  CHECK(show(s.eval("Linear(3)")) == "Linear(n: 3)");
  // What an imported file imports is not handed on.
  CHECK(s.eval("hidden(1)").is_error());
  CHECK(s.codes() == "E0301");
  std::vector<std::string> names;
  for (const FileSymbols* file : s.imports->in_order()) names.push_back(file->name);
  CHECK(names == std::vector<std::string>{"nn/shared.model", "nn/linear.model", "other.model", "main.model"});
}

TEST_CASE("a fn sees the names of its own file") {
  Session s("import a\nfn k(x) = 100");
  s.file("a.model", "fn k(x) = x + 1  fn use(x) = k(x)");
  CHECK(s.eval("use(1)").as_int() == 2);
  CHECK(s.eval("k(1)").as_int() == 100);
}

TEST_CASE("an alias gives the import a name") {
  Session s("import a as one\nimport b as two\nmodule M(c: one.C) { }");
  s.file("a.model", "fn f(x) = x + 1  config C { }  module N(n: dim) { }").file("b.model", "fn f(x) = x + 2");
  CHECK(s.eval("one.f(1)").as_int() == 2);
  CHECK(s.eval("two.f(1)").as_int() == 3);
  CHECK(show(s.eval("one.N(3)")) == "N(n: 3)");
  CHECK(s.eval("f(1)").is_error());
  CHECK(s.eval("one.g(1)").is_error());
  CHECK(s.codes() == "E0301 E0301");
  CHECK(holds(s.messages(), "a.model declares no `g`"));
}

TEST_CASE("a name of two imports is an error where it is used, and only there") {
  Session s("import a\nimport b\nfn own(x) = x");
  s.file("a.model", "fn f(x) = 1  fn own(x) = 2  fn g(x) = 3").file("b.model", "fn f(x) = 4");
  CHECK(s.eval("own(7)").as_int() == 7);
  CHECK(s.eval("g(7)").as_int() == 3);
  CHECK(s.codes() == "");
  CHECK(s.eval("f(1)").is_error());
  CHECK(s.codes() == "E0302");
  CHECK(holds(s.messages(), "`f` is declared in a.model and in b.model"));
  // One file by two ways is one.
  Session same("import a\nimport a");
  same.file("a.model", "fn f(x) = 1");
  CHECK(same.eval("f(0)").as_int() == 1);
}

TEST_CASE("a name twice in a file, and an alias that is taken") {
  Session s("fn f(x) = 1\nmodule f() { }");
  CHECK_FALSE(s.load(true));
  CHECK(s.codes() == "E0303");
  CHECK(holds(s.messages(), "`f` is declared twice in main.model"));
  Session alias("import a as f\nfn f(x) = 1");
  alias.file("a.model", "");
  CHECK_FALSE(alias.load(true));
  CHECK(alias.codes() == "E0303");
  Session twice("import a as f\nimport b as f");
  twice.file("a.model", "").file("b.model", "");
  CHECK_FALSE(twice.load(true));
  CHECK(twice.codes() == "E0303");
}

TEST_CASE("a circle of imports is named whole") {
  Session s("import a");
  s.file("a.model", "import b").file("b.model", "import a");
  CHECK_FALSE(s.load(true));
  CHECK(s.codes() == "E0305");
  CHECK(holds(s.messages(), "a.model imports b.model imports a.model"));
  Session self("import main");
  CHECK_FALSE(self.load(true));
  CHECK(self.codes() == "E0305");
}

TEST_CASE("a missing import names the places and the nearest file") {
  Session s("import nn.linaer");
  s.file("nn/linear.model", "").import_path("/nonexistent/lib");
  CHECK_FALSE(s.load(true));
  CHECK(s.codes() == "E0304");
  CHECK(holds(s.messages(), "no file nn/linaer.model for `import nn.linaer`"));
  CHECK(holds(s.messages(), "looked for /nonexistent/lib/nn/linaer.model"));
  CHECK(holds(s.messages(), "did you mean `import nn.linear`?"));
}

TEST_CASE("all syntax errors of all files are said") {
  Session s("import a\nimport b\nfn f( = 1");
  s.file("a.model", "module {").file("b.model", "config 3 { }");
  CHECK_FALSE(s.load(true));
  CHECK(holds(s.messages(), "main.model:"));
  // The main file's own mistakes come first; what it imports cannot be known then.
  Session t("import a\nimport b");
  t.file("a.model", "module {").file("b.model", "config 3 { }");
  CHECK_FALSE(t.load(true));
  CHECK(holds(t.messages(), "a.model:"));
  CHECK(holds(t.messages(), "b.model:"));
}

TEST_CASE("files on disk: beside the importing one first, then in the import paths") {
  Folder folder;
  folder.write("app/main.model", "import blocks.attn\nimport nn.norm\nimport local");
  folder.write("app/blocks/attn.model", "import helper\nfn attn(x) = helper(x)");
  folder.write("app/blocks/helper.model", "fn helper(x) = x + 1");
  folder.write("app/local.model", "fn local(x) = 1");
  folder.write("lib/nn/norm.model", "import nn.base\nfn norm(x) = base(x)");
  folder.write("lib/nn/base.model", "fn base(x) = x + 10");
  folder.write("lib/local.model", "fn local(x) = 2");
  source::SourceManager sources;
  diag::Sink sink;
  Options options;
  options.import_paths = {(folder.path / "lib").string()};
  const auto main = sources.load(folder.path / "app/main.model", "main.model");
  REQUIRE(main);
  const auto imports = load_imports(sources, *main, options, sink);
  REQUIRE(imports);
  std::vector<std::string> names;
  for (const FileSymbols* file : imports->in_order()) names.push_back(file->name);
  CHECK(names == std::vector<std::string>{"blocks/helper.model", "blocks/attn.model", "nn/base.model", "nn/norm.model", "local.model",
                                          "main.model"});
  CHECK(imports->paths().size() == 6);
  CHECK(imports->folder() == folder.path / "app");
  graph::DimTable dims;
  Evaluator evaluator(sources, dims, sink);
  const auto id = sources.add("expression", "[attn(1), norm(1), local(1)]");
  const auto expr = syntax::parse_expr(id, sources, sink);
  CHECK(show(evaluator.eval(*expr, Environment(&imports->main()))) == "[2, 11, 1]");
}

TEST_CASE("a file of the same name in a folder beside the importing file's own") {
  Folder folder;
  folder.write("models/qwen/qwen.model", "import llama\nfn q(x) = l(x) + 10");
  folder.write("models/llama/llama.model", "import parts\nfn l(x) = part(x)\ntest \"of llama\" { config \"c.json\" }");
  folder.write("models/llama/parts.model", "fn part(x) = x + 1");
  folder.write("other/llama.model", "fn l(x) = 0");
  const auto run = [&](const std::string& main, const std::vector<std::string>& paths, const std::string& library = {}) {
    source::SourceManager sources;
    diag::Sink sink;
    Options options;
    for (const std::string& path : paths) options.import_paths.push_back((folder.path / path).string());
    if (!library.empty()) options.library = (folder.path / library).string();
    const auto id = sources.load(folder.path / main, fs::path(main).filename().string());
    REQUIRE(id);
    const auto imports = load_imports(sources, *id, options, sink);
    if (!imports) return diag::render(sink, sources);
    std::string names;
    for (const FileSymbols* file : imports->in_order()) names += file->name + " ";
    return names + std::to_string(tests_of(*imports).size());
  };
  // The sibling wins over an import path; the tests of an imported file are not this file's.
  CHECK(run("models/qwen/qwen.model", {"other"}) == "llama/parts.model llama/llama.model qwen.model 0");
  folder.write("models/qwen/llama.model", "fn l(x) = 2");
  CHECK(run("models/qwen/qwen.model", {"other"}) == "llama.model qwen.model 0");
  fs::remove(folder.path / "models/qwen/llama.model");
  // From elsewhere: as it is in an import path, or a folder with it there; then the library.
  folder.write("far/away/app.model", "import llama");
  CHECK(run("far/away/app.model", {"other"}) == "llama.model app.model 0");
  CHECK(run("far/away/app.model", {"models"}) == "llama/parts.model llama/llama.model app.model 0");
  CHECK(run("far/away/app.model", {"models", "models/../models"}) == "llama/parts.model llama/llama.model app.model 0");
  CHECK(run("far/away/app.model", {}, "other") == "llama.model app.model 0");
  CHECK(run("far/away/app.model", {"models"}, "other") == "llama/parts.model llama/llama.model app.model 0");
  const std::string twice = run("far/away/app.model", {"models", "other"});
  CHECK(holds(twice, "E0330"));
  CHECK(holds(twice, "found " + (folder.path / "models/llama/llama.model").string()));
  CHECK(holds(twice, "found " + (folder.path / "other/llama.model").string()));
  const std::string missing = run("far/away/app.model", {"far"}, "models");
  CHECK(holds(missing, "E0304"));
  for (const char* place : {"far/away/llama.model", "far/llama/llama.model", "far/llama.model", "models/llama.model"})
    CHECK(holds(missing, "looked for " + (folder.path / place).string()));
}

TEST_CASE("tests of the main file are known without a configuration") {
  Session s("import a\ntest \"first\" { config \"x\" }\nfn f(x) = x\ntest \"second\" { config \"x\" }");
  s.file("a.model", "test \"other\" { config \"x\" }");
  s.load();
  const auto tests = tests_of(*s.imports);
  REQUIRE(tests.size() == 2);
  CHECK(tests[0].decl->name.value == "first");
  CHECK(tests[1].decl->name.value == "second");
}
