// Encoders over padded batches and images, and an encoder with a decoder: the graphs of bert, vit and whisper in the
// reference evaluator, against transformers' outputs and stages.
#include <doctest/doctest.h>

#include "parity_support.h"

using namespace modelc;
using namespace modelc::sema::test;
namespace fs = std::filesystem;
using graph::eval::Array;
using graph::eval::Evaluator;
using graph::eval::Input;
using graph::eval::Output;
using graph::eval::Outputs;

namespace {

const fs::path examples = fs::path(MODELC_SOURCE_DIR) / "examples";

std::vector<Output> run(Evaluator& e, const std::string& function, const std::map<std::string, Input>& inputs) {
  auto outputs = e.run(function, inputs);
  if (!outputs) FAIL(outputs.error().text());
  return std::move(*outputs);
}

// Values by their names: stages of all calls so far, and the outputs of the calls.
struct Seen {
  std::map<std::string, Array> values;
  explicit Seen(Evaluator& e) {
    e.set_trace([this](const std::string& path, const Array& value) { values[path] = value; });
  }
  void add(const std::vector<Output>& outputs) {
    for (const Output& o : outputs) values[o.name] = o.value;
  }
  // Everything in the file but the inputs. `keep` says which rows of [batch, seq, …] count.
  void compare(const Checkpoint& expected, const std::set<std::string>& inputs, const std::vector<std::int64_t>& keep = {},
               std::size_t rows = 0) const {
    std::size_t compared = 0;
    for (const TensorInfo& tensor : expected.index->tensors()) {
      if (inputs.contains(tensor.name)) continue;
      CAPTURE(tensor.name);
      REQUIRE(values.contains(tensor.name));
      const Array& got = values.at(tensor.name);
      const Array wanted = expected.floats(tensor.name);
      CHECK(got.reals.size() == wanted.reals.size());
      const bool by_row = rows != 0 && tensor.shape.size() == 3;
      const double d = by_row ? distance(kept_rows(got, keep), kept_rows(wanted, keep)) : distance(got.reals, wanted.reals);
      CHECK(d <= parity_bound);
      ++compared;
    }
    CHECK(compared >= 2);
  }
};

void check_bert(const std::string& file, const std::string& name, const std::string& prefix = "") {
  const fs::path folder = examples / "bert" / "fixtures" / name;
  CAPTURE(folder.string());
  const sema::Program program = program_of(examples / "bert" / file, folder);
  const Checkpoint weights = open_fixture(folder), expected = open_fixture(folder / "expected.safetensors");
  Evaluator e(program.graph, weights_of(program, weights, prefix));
  Seen seen(e);
  const Array mask = expected.booleans("attention_mask");
  seen.add(run(
      e, "forward",
      {{"input_ids", expected.integers("input_ids")}, {"attention_mask", mask}, {"token_type_ids", expected.integers("token_type_ids")}}));
  seen.compare(expected, {"input_ids", "attention_mask", "token_type_ids"}, mask.integers, mask.integers.size());
}

}  // namespace

TEST_CASE("bert: a padded batch with token types and pooler") {
  check_bert("bert.model", "bert-tiny");
  check_bert("bert.model", "bert-prefixed", "bert.");
}

TEST_CASE("bert: sentence embeddings by mean and by first token") {
  check_bert("sentence.model", "sentence-mean");
  check_bert("sentence.model", "sentence-first");
}

TEST_CASE("bert: inputs with a default may be left out; padding changes nothing; the context bounds seq") {
  const fs::path folder = examples / "bert" / "fixtures" / "sentence-mean";
  const sema::Program program = program_of(examples / "bert" / "sentence.model", folder);
  const Checkpoint weights = open_fixture(folder), expected = open_fixture(folder / "expected.safetensors");
  Evaluator e(program.graph, weights_of(program, weights));
  const Array ids = expected.integers("input_ids"), types = expected.integers("token_type_ids"),
              wanted = expected.floats("sentence_embedding");
  // The first row alone and without padding needs no mask: all of its 5 tokens count.
  const auto first = [](const Array& a, std::int64_t n) {
    return graph::eval::index_array({1, n}, {a.integers.begin(), a.integers.begin() + n});
  };
  const auto alone = run(e, "forward", {{"input_ids", first(ids, 5)}, {"token_type_ids", first(types, 5)}});
  const std::vector<float> row(wanted.reals.begin(), wanted.reals.begin() + 24);
  CHECK(distance(alone.at(0).value.reals, row) <= 1e-5);
  // No token types is type 0 everywhere.
  const auto left_out = run(e, "forward", {{"input_ids", first(ids, 5)}});
  const auto zeros =
      run(e, "forward", {{"input_ids", first(ids, 5)}, {"token_type_ids", graph::eval::index_array({1, 5}, {0, 0, 0, 0, 0})}});
  CHECK(left_out.at(0).value.reals == zeros.at(0).value.reals);
  CHECK(distance(left_out.at(0).value.reals, row) > 1e-3);

  const auto refused = [&](const std::map<std::string, Input>& inputs) {
    const auto out = e.run("forward", inputs);
    REQUIRE_FALSE(out.ok());
    return out.error().message;
  };
  CHECK(refused({{"input_ids", graph::eval::index_array({1, 21}, std::vector<std::int64_t>(21, 3))}}) ==
        "input_ids makes seq 21, the context is 20");
  const Array narrow = graph::eval::bool_array({3, 5}, std::vector<std::int64_t>(15, 1));
  CHECK(refused({{"input_ids", ids}, {"attention_mask", narrow}}).find("attention_mask is [3, 5], wanted bool[batch, seq]") == 0);
  const Array beyond = graph::eval::index_array({3, 9}, std::vector<std::int64_t>(27, 3));
  CHECK(refused({{"input_ids", ids}, {"token_type_ids", beyond}}).find("token_type_ids is index(3)[batch, seq], and has 3 at 0") == 0);
}

TEST_CASE("vit: patches, class token, positions, classifier") {
  for (const std::string name : {"vit-tiny", "vit-gray"}) {
    const fs::path folder = examples / "vit" / "fixtures" / name;
    CAPTURE(folder.string());
    const sema::Program program = program_of(examples / "vit" / "vit.model", folder);
    const Checkpoint weights = open_fixture(folder), expected = open_fixture(folder / "expected.safetensors");
    Evaluator e(program.graph, weights_of(program, weights));
    Seen seen(e);
    seen.add(run(e, "forward", {{"pixel_values", expected.floats("pixel_values")}}));
    seen.compare(expected, {"pixel_values"});
  }
}

namespace {

// Whisper on a fixture of two recordings with eight tokens each.
struct Speech {
  fs::path folder;
  sema::Program program;
  Checkpoint weights, expected;
  Evaluator e;
  Array features, ids, logits;
  std::size_t vocab;

  explicit Speech(const std::string& name)
      : folder(examples / "whisper" / "fixtures" / name),
        program(program_of(examples / "whisper" / "whisper.model", folder)),
        weights(open_fixture(folder)),
        expected(open_fixture(folder / "expected.safetensors")),
        e(program.graph, weights_of(program, weights)),
        features(expected.floats("input_features")),
        ids(expected.integers("decoder_input_ids")),
        logits(expected.floats("logits")),
        vocab(static_cast<std::size_t>(logits.shape[2])) {}

  // One recording of the two.
  Array recording(std::size_t which) const {
    const std::size_t n = features.reals.size() / 2;
    const auto from = features.reals.begin() + static_cast<std::ptrdiff_t>(which * n);
    return graph::eval::array({1, features.shape[1], features.shape[2]}, {from, from + static_cast<std::ptrdiff_t>(n)});
  }
  std::vector<Output> encode(const Array& input, std::vector<std::int64_t> slots) {
    return run(e, "encode", {{"input_features", input}, {"at", e.sequences(std::move(slots))}});
  }
  // Tokens from..to of a recording's text for each slot; the logits of all rows, one after another.
  struct Part {
    std::int64_t slot;
    std::size_t which, from, to;
  };
  std::vector<float> decode(const std::vector<Part>& parts) {
    std::vector<Evaluator::Next> next;
    std::vector<std::int64_t> tokens;
    for (const Part& p : parts) {
      next.push_back({p.slot, static_cast<std::int64_t>(p.to - p.from)});
      for (std::size_t i = p.from; i < p.to; ++i) tokens.push_back(ids.integers[p.which * 8 + i]);
    }
    const auto batch = e.batch(next, Outputs::all);
    REQUIRE(batch.ok());
    const auto n = static_cast<std::int64_t>(tokens.size());
    return run(e, "forward", {{"decoder_input_ids", graph::eval::index_array({n}, tokens)}, {"at", *batch}}).at(0).value.reals;
  }
  std::vector<float> wanted(const std::vector<Part>& parts) const {
    std::vector<float> out;
    for (const Part& p : parts) {
      const auto row = [&](std::size_t i) { return logits.reals.begin() + static_cast<std::ptrdiff_t>((p.which * 8 + i) * vocab); };
      out.insert(out.end(), row(p.from), row(p.to));
    }
    return out;
  }
  double off(const std::vector<Part>& parts) { return distance(decode(parts), wanted(parts)); }
};

}  // namespace

TEST_CASE("whisper: two recordings in one batch, outputs and stages") {
  for (const std::string name : {"whisper-tiny-random", "whisper-scaled"}) {
    CAPTURE(name);
    Speech s(name);
    Seen seen(s.e);
    seen.add(s.encode(s.features, {0, 1}));
    const auto batch = s.e.batch({{0, 8}, {1, 8}}, Outputs::all);
    const Array all = graph::eval::index_array({16}, s.ids.integers);
    seen.add(run(s.e, "forward", {{"decoder_input_ids", all}, {"at", *batch}}));
    seen.compare(s.expected, {"input_features", "decoder_input_ids"});
  }
}

TEST_CASE("whisper: recordings one by one, ragged batches, prefill and decode come to the same") {
  Speech s("whisper-tiny-random");
  s.encode(s.recording(1), {4});
  CHECK(s.off({{4, 1, 0, 3}}) <= parity_bound);
  s.encode(s.recording(0), {7});
  CHECK(s.off({{7, 0, 0, 5}, {4, 1, 3, 4}}) <= parity_bound);
  CHECK(s.off({{4, 1, 4, 8}, {7, 0, 5, 6}}) <= parity_bound);
  for (std::size_t i = 6; i < 8; ++i) CHECK(s.off({{7, 0, i, i + 1}}) <= parity_bound);
  // A slot that is emptied takes another recording; of a sequence that has not begun the last one counts.
  s.e.reset(4);
  s.encode(s.recording(1), {4});
  s.encode(s.recording(0), {4});
  CHECK(s.off({{4, 0, 0, 8}}) <= parity_bound);
}

TEST_CASE("whisper: what no call has written is an error, and so is writing it too late") {
  Speech s("whisper-tiny-random");
  const auto forward = [&](std::initializer_list<Evaluator::Next> next, std::int64_t n) {
    const auto batch = s.e.batch(next, Outputs::all);
    REQUIRE(batch.ok());
    return s.e.run("forward", {{"decoder_input_ids", graph::eval::index_array({n}, std::vector<std::int64_t>(n, 3))}, {"at", *batch}});
  };
  s.encode(s.recording(0), {0});
  const auto unwritten = forward({{0, 2}, {1, 1}}, 3);
  REQUIRE_FALSE(unwritten.ok());
  CHECK(unwritten.error().kind == "state");
  CHECK(unwritten.error().message == "attend: nothing has been set in the state memory for slot 1");
  CHECK(s.e.length(0) == 0);                     // the call failed as a whole
  REQUIRE(forward({{0, 2}}, 2).ok());
  const auto late = s.e.run("encode", {{"input_features", s.recording(1)}, {"at", s.e.sequences({0})}});
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().message == "set: slot 0 has 2 tokens already, and the state memory is set before the first");
  const auto short_list = s.e.run("encode", {{"input_features", s.features}, {"at", s.e.sequences({3})}});
  REQUIRE_FALSE(short_list.ok());
  CHECK(short_list.error().message.find("input_features is [2, 6, 20], wanted f32[batch, 6, 20]") == 0);
  for (const auto& slots : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{3, 3}})
    CHECK(s.e.run("encode", {{"input_features", s.features}, {"at", s.e.sequences(slots)}}).error().kind == "batch");
}
