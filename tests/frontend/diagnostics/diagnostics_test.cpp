#include "frontend/diagnostics/diagnostics.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace modelc;
using diag::Sink;
using source::Span;

namespace {

constexpr diag::Code failure{"E0000", "failure", "a failure", "for tests"};
constexpr diag::Code other{"E0001", "other", "another", "for tests"};
constexpr diag::Code doubt{"W0000", "doubt", "a doubt", "for tests"};
constexpr diag::Code remark{"N0000", "remark", "a remark", "for tests"};

const source::FileId file{0};

}  // namespace

TEST_CASE("messages are kept in the order in which they are made") {
  Sink sink;
  sink.error(failure, Span{file, 9, 10}, "first made");
  sink.warning(doubt, Span{file, 1, 2}, "second made");
  sink.note(remark, "config.json", "third made");
  REQUIRE(sink.diagnostics().size() == 3);
  CHECK(sink.diagnostics()[0].message == "first made");
  CHECK(sink.diagnostics()[1].severity == diag::Severity::warning);
  CHECK(sink.diagnostics()[2].severity == diag::Severity::note);
  CHECK(sink.diagnostics()[2].place == "config.json");
  CHECK_FALSE(sink.diagnostics()[2].primary.valid());
  CHECK(sink.error_count() == 1);
  CHECK(sink.warning_count() == 1);
  CHECK(sink.has_errors());
  CHECK(sink.has(failure));
  CHECK_FALSE(sink.has(other));
}

TEST_CASE("a warning is no error") {
  Sink sink;
  sink.warning(doubt, "x", "hm");
  CHECK_FALSE(sink.has_errors());
}

TEST_CASE("labels, notes and help are added to the message just made") {
  Sink sink;
  sink.error(failure, Span{file, 0, 3}, "wrong")
      .mark("expected that")
      .label({file, 5, 6}, "declared here")
      .label(Span{}, "came from nowhere")
      .note("found this")
      .help("do that")
      .help("");
  const diag::Diagnostic& d = sink.diagnostics().front();
  CHECK(d.primary_label == "expected that");
  REQUIRE(d.labels.size() == 1);
  CHECK(d.labels[0].text == "declared here");
  CHECK(d.notes == std::vector<std::string>{"came from nowhere", "found this"});
  CHECK(d.help == "do that");
}

TEST_CASE("a mistake is said once, and what is added to the second telling goes nowhere") {
  Sink sink;
  sink.error(failure, Span{file, 0, 3}, "wrong").note("one");
  sink.error(failure, Span{file, 0, 3}, "wrong").note("two");
  CHECK(sink.error_count() == 1);
  CHECK(sink.diagnostics()[0].notes == std::vector<std::string>{"one"});
  sink.error(failure, Span{file, 1, 3}, "wrong");   // another place
  sink.error(other, Span{file, 0, 3}, "wrong");     // another code
  sink.error(failure, Span{file, 0, 3}, "wronger"); // another message
  sink.error(failure, "here", "wrong");
  sink.error(failure, "there", "wrong");
  CHECK(sink.error_count() == 6);
}

TEST_CASE("no more are kept than are of use, all are counted") {
  Sink sink;
  for (std::size_t i = 0; i < Sink::max_kept + 10; ++i) {
    sink.error(failure, Span{file, static_cast<std::uint32_t>(i), 0}, "wrong").note("n");
  }
  CHECK(sink.diagnostics().size() == Sink::max_kept);
  CHECK(sink.error_count() == Sink::max_kept + 10);
  sink.clear();
  CHECK_FALSE(sink.has_errors());
  CHECK(sink.diagnostics().empty());
  sink.error(failure, Span{file, 0, 0}, "wrong");
  CHECK(sink.error_count() == 1);
}

TEST_CASE("a failed result becomes a message with its notes and help") {
  Sink sink;
  sink.error(failure, "model.gguf", Error{"kind", "cannot read it", {"at byte 3"}, "download it again"});
  const diag::Diagnostic& d = sink.diagnostics().front();
  CHECK(d.message == "cannot read it");
  CHECK(d.notes == std::vector<std::string>{"at byte 3"});
  CHECK(d.help == "download it again");
}

TEST_CASE("the nearest name") {
  using diag::nearest;
  const std::vector<std::string> names = {"hidden_size", "head_dim", "vocab_size", "norm", "a"};
  CHECK(nearest("hiden_size", names) == "hidden_size");
  CHECK(nearest("hidden_sizes", names) == "hidden_size");
  CHECK(nearest("hidden_siez", names) == "hidden_size");  // neighbours exchanged
  CHECK(nearest("Hidden-Size", names) == "hidden_size");  // letter case and joints
  CHECK(nearest("nrom", names) == "norm");
  CHECK(nearest("vocab", names) == "vocab_size");  // a word of a name
  CHECK(nearest("final_norm", names) == "norm");
  CHECK_FALSE(nearest("attention", names).has_value());
  CHECK_FALSE(nearest("b", names).has_value());  // another letter is another name
  CHECK_FALSE(nearest("", names).has_value());
  CHECK_FALSE(nearest("x", {}).has_value());
  CHECK_FALSE(nearest(std::string(100000, 'x'), names).has_value());
  CHECK(nearest("tast", {"test", "task"}) == "test");  // the first of equals
  CHECK(nearest("q_proj", {"k_proj", "q_proj"}) == "q_proj");
  CHECK(diag::did_you_mean("hiden_size", names) == "did you mean `hidden_size`?");
  CHECK(diag::did_you_mean("attention", names).empty());
}

TEST_CASE("loading says what is wrong, at the import if there is one") {
  source::SourceManager sources;
  Sink sink;
  const source::FileId importer = sources.add("a.model", "language 1 import nn.nothing");
  CHECK_FALSE(diag::load_source(sources, "/nowhere/nn/nothing.model", "nn/nothing.model", sink, {importer, 18, 28}));
  REQUIRE(sink.diagnostics().size() == 1);
  CHECK(sink.has(diag::code::source_not_found));
  CHECK(sink.diagnostics()[0].primary == Span{importer, 18, 28});
  CHECK_FALSE(diag::load_source(sources, std::filesystem::temp_directory_path(), "folder.model", sink));
  CHECK(sink.has(diag::code::source_unreadable));
  CHECK(sink.diagnostics()[1].place == "folder.model");

  const std::filesystem::path path = std::filesystem::temp_directory_path() / "modelc-diagnostics-test.model";
  std::ofstream(path, std::ios::binary) << "language 1\n\xFF";
  CHECK_FALSE(diag::load_source(sources, path, "bad.model", sink));
  CHECK(sink.has(diag::code::not_utf8));
  std::ofstream(path, std::ios::binary) << "language 1\n";
  CHECK(diag::load_source(sources, path, "good.model", sink).has_value());
  std::filesystem::remove(path);
}

TEST_CASE("NUL bytes and bytes that are no text have a place") {
  source::SourceManager sources;
  Sink sink;
  CHECK(diag::check_text(sources.add("good", "x"), sources, sink));
  CHECK_FALSE(diag::check_text(sources.add("nul", std::string("a\n\0", 3)), sources, sink));
  CHECK(sink.diagnostics().back().code->text == "E0105");
  CHECK(sources.place(sink.diagnostics().back().primary) == "nul:2:1");
  CHECK_FALSE(diag::check_text(sources.add("bytes", "ab\xFE"), sources, sink));
  CHECK(sink.diagnostics().back().code->text == "E0104");
  CHECK(sink.diagnostics().back().message == "the byte 0xFE here is not UTF-8");
}
