#include "runtime/checkpoint/first_bytes.h"

namespace modelc {
namespace {

struct Row {
  std::string_view begins;
  FileGuess guess;
};
constexpr std::string_view pickle_help = "convert it: load it in Python and write it with safetensors.torch.save_file";
constexpr Row rows[] = {
    {"<",
     {"it looks like an HTML page: a download that ended on a page of the server",
      "open the address in a browser to see what the server says (a login, a licence to accept), then download again"}},
    {"version https://git-lfs",
     {"it is a git-lfs pointer, not the file that it points to", "run `git lfs pull` in that folder, or download the file itself"}},
    {"GGUF", {"it is a GGUF file", "give it a name that ends in .gguf"}},
    {"PK\x03\x04", {"it is a zip archive, as PyTorch's .bin and .pt files are", pickle_help}},
    {"\x80\x02", {"it is a Python pickle, as old PyTorch files are", pickle_help}},
    {"\x89HDF", {"it is an HDF5 file, as Keras writes", "convert it with safetensors' tools in Python"}},
    {"\x1f\x8b", {"it is compressed with gzip", "unpack it first"}},
    {"ggjt", {"it is of a format older than GGUF", "download the model as GGUF"}},
    {"tjgg", {"it is of a format older than GGUF", "download the model as GGUF"}},
    {"lmgg", {"it is of a format older than GGUF", "download the model as GGUF"}},
};

}  // namespace

const FileGuess* guess_file(std::string_view first_bytes) {
  if (first_bytes.starts_with("\xef\xbb\xbf")) first_bytes.remove_prefix(3);
  for (const Row& row : rows)
    if (first_bytes.starts_with(row.begins)) return &row.guess;
  return nullptr;
}

}  // namespace modelc
