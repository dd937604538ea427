#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <random>

#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/safetensors/reader.h"
#include "runtime/checkpoint/safetensors/writer.h"
#include "runtime/checkpoint/tensor_data.h"
#include "tests/runtime/base/temporary_folder.h"
#include "tests/runtime/checkpoint/safetensors_text.h"

using namespace modelc;
using test::entry;
using test::safetensors;

namespace {

class Files {
 public:
  Result<SafetensorsHeader> read(std::string_view bytes, bool lenient = false) {
    SafetensorsOptions options;
    options.label = "f";
    options.allow_trailing = lenient;
    return read_safetensors_header(folder_.write("f.safetensors", bytes), options);
  }
  std::string kind(std::string_view bytes) {
    const Result<SafetensorsHeader> r = read(bytes);
    return r ? "ok" : r.error().kind;
  }
  std::string message(std::string_view bytes) {
    const Result<SafetensorsHeader> r = read(bytes);
    return r ? "ok" : r.error().message;
  }
  const test::TemporaryFolder& folder() const { return folder_; }

 private:
  test::TemporaryFolder folder_;
};

std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets, std::size_t data) {
  return safetensors(
      "{\"a\":{\"dtype\":" + std::string(dtype) + ",\"shape\":" + std::string(shape) + ",\"data_offsets\":" + std::string(offsets) + "}}",
      data);
}

}  // namespace

TEST_CASE("a header becomes tensors") {
  Files files;
  const Result<SafetensorsHeader> r =
      files.read(safetensors("{\"__metadata__\":{\"format\":\"pt\",\"b\":\"x\\u00fc\"}," + entry("w", "BF16", "[2,3]", 0, 12) + "," +
                                 entry("i", "I64", "[1]", 12, 20) + "}   ",
                             20));
  REQUIRE(r.ok());
  REQUIRE(r->tensors.size() == 2);
  CHECK(r->tensors[0].name == "w");
  CHECK(r->tensors[0].encoding == Encoding::bf16);
  CHECK(r->tensors[0].shape == std::vector<std::int64_t>{2, 3});
  CHECK(r->tensors[0].offset == r->file.header_bytes);
  CHECK(r->tensors[0].size == 12);
  CHECK(r->tensors[1].offset == r->file.header_bytes + 12);
  CHECK(r->file.metadata == std::vector<std::pair<std::string, std::string>>{{"format", "pt"}, {"b", "xü"}});
  CHECK(r->file.size == r->file.header_bytes + 20);
}

TEST_CASE("every dtype of the format") {
  Files files;
  for (const auto& [spelling, bytes] : std::vector<std::pair<std::string, int>>{{"F64", 8},
                                                                                {"F32", 4},
                                                                                {"F16", 2},
                                                                                {"BF16", 2},
                                                                                {"F8_E4M3", 1},
                                                                                {"F8_E5M2", 1},
                                                                                {"F8_E8M0", 1},
                                                                                {"I64", 8},
                                                                                {"I32", 4},
                                                                                {"I16", 2},
                                                                                {"I8", 1},
                                                                                {"U64", 8},
                                                                                {"U32", 4},
                                                                                {"U16", 2},
                                                                                {"U8", 1},
                                                                                {"BOOL", 1},
                                                                                {"C64", 8}}) {
    const auto size = static_cast<std::size_t>(bytes) * 6;
    const std::string text = one("\"" + spelling + "\"", "[2,3]", "[0," + std::to_string(size) + "]", size);
    CAPTURE(spelling);
    CHECK(files.kind(text) == "ok");
    CHECK(safetensors_name(*encoding_from_safetensors(spelling)) == spelling);
  }
  CHECK(files.kind(one("\"F4\"", "[2,4]", "[0,4]", 4)) == "ok");
  // Elements of less than a byte are packed across rows; all of them together are whole bytes.
  CHECK(files.kind(one("\"F4\"", "[2,3]", "[0,3]", 3)) == "ok");
  CHECK(files.kind(one("\"F4\"", "[3,3]", "[0,5]", 5)) == "size-mismatch");
  for (const char* six : {"F6_E2M3", "F6_E3M2"}) {
    CHECK(files.kind(one("\"" + std::string(six) + "\"", "[2,6]", "[0,9]", 9)) == "ok");
    CHECK(files.kind(one("\"" + std::string(six) + "\"", "[2,3]", "[0,5]", 5)) == "size-mismatch");
    CHECK(safetensors_name(*encoding_from_safetensors(six)) == six);
  }
  for (const char* bad : {"\"f32\"", "\"F31\"", "\"\"", "1", "null", "[]"}) CHECK(files.kind(one(bad, "[2]", "[0,8]", 8)) == "dtype");
  CHECK_FALSE(encoding_from_safetensors("Q8_0"));
  CHECK(safetensors_name(Encoding::q8_0).empty());
}

TEST_CASE("each number may lie") {
  Files files;
  // Shapes.
  for (const char* bad : {"[-2]", "[2.0]", "[\"2\"]", "[null]", "{}", "2", "[9223372036854775808]", "[1e3]", "[[2]]"})
    CHECK(files.kind(one("\"F32\"", bad, "[0,8]", 8)) == "shape");
  for (const char* bad : {"[4294967296,4294967296]", "[9223372036854775807,9223372036854775807]", "[3]", "[1]", "[0]", "[2,2]",
                          "[9223372036854775807]", "[65536,65536,65536,65536]", "[2305843009213693954]"})
    CHECK(files.kind(one("\"F32\"", bad, "[0,8]", 8)) == "size-mismatch");
  CHECK(files.kind(one("\"F32\"", "[0,9223372036854775807]", "[0,0]", 0)) == "ok");
  CHECK(files.kind(one("\"F32\"", "[0,9223372036854775807,9223372036854775807]", "[0,0]", 0)) == "size-mismatch");
  CHECK(files.kind(one("\"F32\"", "[]", "[0,4]", 4)) == "ok");
  // Offsets.
  for (const char* bad :
       {"[0,8.0]", "[0,-8]", "[-8,0]", "[\"0\",8]", "[0]", "[]", "[0,8,8]", "8", "null", "{}", "[null,8]", "[0,18446744073709551616]"})
    CHECK(files.kind(one("\"F32\"", "[2]", bad, 8)) == "offset-type");
  CHECK(files.kind(one("\"F32\"", "[2]", "[8,0]", 8)) == "size-mismatch");
  CHECK(files.kind(one("\"F32\"", "[2]", "[18446744073709551608,18446744073709551615]", 8)) == "size-mismatch");
  CHECK(files.kind(one("\"U8\"", "[7]", "[18446744073709551608,18446744073709551615]", 8)) == "out-of-file");
  CHECK(files.kind(one("\"F32\"", "[2]", "[4,12]", 8)) == "out-of-file");
  CHECK(files.kind(one("\"F32\"", "[0]", "[9,9]", 8)) == "out-of-file");
  // Entries.
  for (const char* bad : {"{\"a\":1}", "{\"a\":null}", "{\"a\":[]}", "{\"a\":{}}", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}",
                          "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}",
                          "{\"__metadata__\":1}", "{\"__metadata__\":{\"a\":1}}", "{", "{}x", "{\"a\"}", " {}", "", "[]", "1",
                          "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", "{\"\xff\":{}}"})
    CHECK(files.kind(safetensors(bad, 0)) == "header-json");
  CHECK(files.kind(safetensors("{}")) == "ok");
  CHECK(files.kind(safetensors("{\"__metadata__\":null}")) == "ok");
  // Lengths.
  CHECK(files.kind("") == "truncated");
  CHECK(files.kind("1234567") == "truncated");
  CHECK(files.kind(test::length_prefix(1)) == "header-length");
  CHECK(files.kind(test::length_prefix(std::uint64_t{1} << 63) + "{}") == "header-length");
  CHECK(files.message(test::length_prefix(100) + "{}") == "f: the header's length is given as 100 bytes, but only 2 follow it");
}

TEST_CASE("the ranges cover the data once") {
  Files files;
  const auto file = [](std::vector<std::pair<int, int>> ranges, std::size_t data) {
    std::string header = "{";
    for (std::size_t i = 0; i < ranges.size(); ++i)
      header += (i ? "," : "") + entry("t" + std::to_string(i), "U8", "[" + std::to_string(ranges[i].second - ranges[i].first) + "]",
                                       static_cast<std::uint64_t>(ranges[i].first), static_cast<std::uint64_t>(ranges[i].second));
    return safetensors(header + "}", data);
  };
  CHECK(files.kind(file({{4, 8}, {0, 4}}, 8)) == "ok");                    // in any order
  CHECK(files.kind(file({{0, 4}, {4, 4}, {4, 8}, {8, 8}}, 8)) == "ok");    // empty tensors anywhere
  CHECK(files.kind(file({{0, 8}, {2, 4}}, 8)) == "overlap");
  CHECK(files.kind(file({{0, 8}, {0, 8}}, 8)) == "overlap");
  CHECK(files.kind(file({{0, 8}, {1, 2}, {6, 9}}, 9)) == "overlap");
  CHECK(files.kind(file({{0, 4}, {5, 8}}, 8)) == "trailing-bytes");
  CHECK(files.message(file({{0, 4}, {5, 8}}, 8)) == "f: 1 byte of data before tensor \"t1\" belongs to no tensor");
  CHECK(files.kind(file({{1, 8}}, 8)) == "trailing-bytes");
  CHECK(files.kind(file({{0, 7}}, 8)) == "trailing-bytes");
  CHECK(files.kind(file({}, 1)) == "trailing-bytes");
  const Result<SafetensorsHeader> lenient = files.read(file({{1, 4}, {5, 8}}, 10), true);
  REQUIRE(lenient.ok());
  CHECK(lenient->notes == std::vector<std::string>{"f: 4 bytes of data belong to no tensor"});
  CHECK_FALSE(files.read(file({{0, 8}, {2, 4}}, 8), true).ok());           // leniency is for what no tensor covers
}

TEST_CASE("other files are called by their name") {
  Files files;
  CHECK(files.message("<html><body>Not Found").find("HTML") != std::string::npos);
  CHECK(files.message("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n").find("git-lfs pointer") != std::string::npos);
  CHECK(files.message(std::string("GGUF\x03\0\0\0\0\0\0\0", 12)).find("GGUF") != std::string::npos);
  CHECK(files.message("PK\x03\x04" + std::string(40, '\0')).find("zip") != std::string::npos);
  for (const char* text : {"<!DOCTYPE html>", "version https://git-lfs", "GGUF1234", "\x1f\x8b 12345678"})
    CHECK(files.kind(text) == "not-safetensors");
  // A header of 60 bytes begins with '<', too.
  std::string header = "{" + entry("a", "U8", "[1]", 0, 1) + "}";
  header.resize(60, ' ');
  CHECK(files.kind(safetensors(header, 1)) == "ok");
}

TEST_CASE("names of any bytes stay printable in messages") {
  Files files;
  const std::string text = files.message(safetensors("{\"a\\u001b[31m\\nb\\\"\":1}"));
  CHECK(text.find("\"a\\x1b[31m\\nb\\\"\"") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(files.message(safetensors("{\"" + std::string(5'000, 'x') + "\":1}")).size() < 500);
}

TEST_CASE("a sparse file of 200 GB is opened by its header alone") {
  test::TemporaryFolder folder;
  constexpr std::uint64_t bytes = 200'000'000'000;
  const std::string header = "{" + entry("w", "F32", "[50000,1000000]", 0, bytes) + "}";
  const std::string path = folder.write("model.safetensors", safetensors(header));
  if (truncate(path.c_str(), static_cast<off_t>(8 + header.size() + bytes)) != 0) {
    MESSAGE("this file system holds no such file: not tested");
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  const Result<CheckpointIndex> index = open_checkpoint(folder.path());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  REQUIRE(index.ok());
  CHECK(index->find("w")->size == bytes);
  CHECK(index->total_elements() == 50'000'000'000);
  CHECK(took.count() < 0.5);
  // Mapping it costs nothing either; a byte beyond 32 bits of offset is reached.
  CheckpointData data(std::make_shared<CheckpointIndex>(*index));
  const Result<TensorBytes> w = data.bytes("w");
  if (w) CHECK(w->data[bytes - 1] == std::byte{0});
}

TEST_CASE("a header of 100 MB is read, one byte more is refused") {
  test::TemporaryFolder folder;
  const std::string entries = "{" + entry("a", "F32", "[1]", 0, 4) + "}";
  for (const bool over : {false, true}) {
    const std::size_t n = safetensors_max_header + (over ? 1 : 0);
    const std::string path = folder / "x.safetensors";
    std::ofstream out(path, std::ios::binary);
    const std::string length = test::length_prefix(n);
    out << length << entries;
    if (!over) out << std::string(n - entries.size(), ' ') << "1234";
    out.close();
    if (over) std::filesystem::resize_file(path, n + 12);
    const Result<SafetensorsHeader> r = read_safetensors_header(path);
    CHECK(r.ok() == !over);
    if (!r) CHECK(r.error().kind == "header-length");
  }
}

TEST_CASE("20,000 tensors are opened in no time") {
  test::TemporaryFolder folder;
  std::vector<std::string> names;
  for (int layer = 0; layer < 40; ++layer)
    for (int expert = 0; expert < 500; ++expert)
      names.push_back("model.layers." + std::to_string(layer) + ".mlp.experts." + std::to_string(expert) + ".weight");
  folder.write("model.safetensors", test::safetensors_of(names));
  // Time of the processor: other programs may run beside the test.
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begin = std::clock();
    const Result<CheckpointIndex> index = open_checkpoint(folder.path());
    for (const std::string& name : names) REQUIRE_UNARY(index->find(name));
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  MESSAGE("20,000 tensors opened and found in " << best * 1e3 << " ms");
  CHECK(best < 1.0);
}

TEST_CASE("a damaged header is refused or read, never worse") {
  Files files;
  const std::string good = safetensors("{\"__metadata__\":{\"format\":\"pt\"}," + entry("model.norm.weight", "BF16", "[2,3]", 0, 12) + "," +
                                           entry("b", "F32", "[]", 12, 16) + "," + entry("c", "U8", "[0,4]", 16, 16) + "}  ",
                                       16);
  REQUIRE(files.kind(good) == "ok");
  for (std::size_t n = 0; n < good.size(); ++n) CHECK(files.kind(std::string_view(good).substr(0, n)) != "ok");
  std::mt19937 random(11);
  constexpr std::string_view alphabet = "{}[]\",:\\0123456789eE+-.FUB_I \n\x80\xff\x01";
  int accepted = 0;
  for (int round = 0; round < 6'000; ++round) {
    std::string bytes = good;
    for (unsigned k = 0, edits = 1 + random() % 3; k < edits; ++k) {
      const std::size_t at = random() % 4 == 0 ? random() % 9 : 8 + random() % (bytes.size() - 8);
      const char c = random() % 3 ? alphabet[random() % alphabet.size()] : static_cast<char>(random());
      switch (random() % 4) {
        case 0: bytes.insert(at, 1, c); break;
        case 1: bytes.erase(at, 1); break;
        default: bytes[at] = c; break;
      }
    }
    const Result<SafetensorsHeader> r = files.read(bytes);
    if (!r) {
      REQUIRE_FALSE(r.error().kind.empty());
      continue;
    }
    ++accepted;
    for (const TensorInfo& t : r->tensors) {
      REQUIRE(t.offset >= r->file.header_bytes);
      REQUIRE(t.size <= bytes.size());
      REQUIRE(t.offset <= bytes.size() - t.size);
      REQUIRE(static_cast<std::uint64_t>(*stored_bytes(t.encoding, t.shape)) == t.size);
    }
  }
  CHECK(accepted > 100);   // the damage was not always fatal, so the checks above had something to see
}

TEST_CASE("what is written is read back") {
  test::TemporaryFolder folder;
  SafetensorsWriter writer;
  const std::vector<float> f = {1.5f, -2.0f, 0.0f, 3.25f, 1e-30f, 7.0f};
  const std::vector<std::int32_t> i = {1, -2, 3};
  const std::vector<std::int64_t> l = {std::int64_t{1} << 40, -1};
  const std::vector<std::byte> b = {std::byte{1}, std::byte{0}, std::byte{1}};
  writer.set_metadata("format", "pt");
  writer.set_metadata("note", "ü \"x\"");
  writer.set_metadata("format", "np");
  REQUIRE(writer.add("mask", DType::boolean, {3}, b).ok());
  REQUIRE(writer.add_f32("model.layers.0", {2, 3}, f).ok());
  REQUIRE(writer.add_i32("ids", {3}, i).ok());
  REQUIRE(writer.add_i64("large", {2}, l).ok());
  REQUIRE(writer.add_f32("nothing", {0, 5}, {}).ok());
  REQUIRE(writer.add_f32("scalar", {}, std::vector<float>{4.0f}).ok());
  CHECK(writer.add_f32("ids", {1}, std::vector<float>{1}).error().kind == "duplicate-name");
  CHECK(writer.add_f32("short", {2}, std::vector<float>{1}).error().kind == "size-mismatch");
  CHECK(writer.add_f32("negative", {-1}, {}).error().kind == "size-mismatch");
  CHECK(writer.add_f32("__metadata__", {0}, {}).error().kind == "reserved-name");
  CHECK(writer.add_f32("\xff", {0}, {}).error().kind == "name");
  CHECK(writer.count() == 6);
  const std::string path = folder / "out.safetensors";
  REQUIRE(writer.write(path).ok());
  CHECK(folder.count() == 1);

  Result<CheckpointIndex> index = open_checkpoint(path);
  REQUIRE(index.ok());
  CHECK(index->files()[0].metadata == std::vector<std::pair<std::string, std::string>>{{"format", "np"}, {"note", "ü \"x\""}});
  CHECK(index->files()[0].header_bytes % 8 == 0);
  for (const TensorInfo& t : index->tensors()) CHECK(t.offset % static_cast<std::uint64_t>(bytes(*dtype_of(t.encoding))) == 0);
  CheckpointData data(std::make_shared<CheckpointIndex>(*std::move(index)));
  const CheckpointIndex& read = data.index();
  CHECK(*data.read_f32(*read.find("model.layers.0")) == f);
  CHECK(*data.read_i64(*read.find("ids")) == std::vector<std::int64_t>{1, -2, 3});
  CHECK(*data.read_i64(*read.find("large")) == l);
  CHECK(*data.read_i64(*read.find("mask")) == std::vector<std::int64_t>{1, 0, 1});
  CHECK(data.read_f32(*read.find("nothing"))->empty());
  CHECK(*data.read_f32(*read.find("scalar")) == std::vector<float>{4.0f});
  CHECK(writer.write(folder / "none/out.safetensors").error().kind == "cannot-write");
  REQUIRE(SafetensorsWriter().write(folder / "empty.safetensors").ok());
  CHECK(open_checkpoint(folder / "empty.safetensors")->tensors().empty());
}
