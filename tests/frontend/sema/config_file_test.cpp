// `config X file "sub/other.json"`: another file of the checkpoint's folder.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "tests/frontend/sema/values_support.h"

using namespace modelc;
using namespace modelc::sema;
using namespace modelc::sema::test;

namespace {

constexpr std::string_view text = R"(config Pooling file "1_Pooling/config.json" { size: dim  mean: bool = true })";

struct Folder {
  Folder() {
    path = std::filesystem::temp_directory_path() / ("modelc_config_file_" + std::to_string(::getpid()));
    std::filesystem::create_directories(path / "1_Pooling");
  }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(std::string_view content) { std::ofstream(path / "1_Pooling/config.json") << content; }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("another file of the folder is bound under its own name") {
  Folder folder;
  folder.write("{\n\"size\": 384}");
  Session s(text);
  const Value c = s.bind("Pooling", "{}", {}, folder.path.string());
  CHECK(s.codes() == "");
  CHECK(field_text(c, "size") == "384");
  CHECK(formula_origins(c.as_config().find("size")->value.formula()) ==
        std::vector<std::string>{"size = 384 from 1_Pooling/config.json:2"});
}

TEST_CASE("its problems name it") {
  Folder folder;
  const auto message = [&](std::string_view content) {
    folder.write(content);
    Session s(text);
    CHECK(s.bind("Pooling", "{}", {}, folder.path.string()).is_error());
    return s.messages();
  };
  CHECK(holds(message("{\"size\": 0}"), "1_Pooling/config.json:1"));
  CHECK(holds(message("{\"size\": 1, \"x\": 2}"), "E0201"));
  CHECK(holds(message("{\"size\": "), "E0216"));
  CHECK(holds(message("[]"), "E0217"));
}

TEST_CASE("a file that cannot be looked for or found") {
  Session no_folder(text);
  CHECK(no_folder.bind("Pooling", "{}").is_error());
  CHECK(holds(no_folder.messages(), "no folder is known to look for it"));
  Folder folder;
  Session missing(text);
  CHECK(missing.bind("Pooling", "{}", {}, folder.path.string()).is_error());
  CHECK(missing.codes() == "E0216");
  Session outside(R"(config P file "../config.json" { })");
  CHECK(outside.bind("P", "{}", {}, folder.path.string()).is_error());
  CHECK(outside.codes() == "E0216");
}
