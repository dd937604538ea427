// modelc_embed FOLDER OUT.cpp [DEPFILE]: compiles the handwritten shaders of FOLDER, family after family, in every
// variant that their .variants files declare, and writes them as one table for the runtime.
//
// A line of FOLDER/<family>/<family>.variants: NAME FILE [DEFINE=VALUE…] [needs FEATURE…]; # begins a comment.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "codegen/emit/spirv/compile.h"

namespace fs = std::filesystem;

namespace {

struct Variant {
  std::string name, file;
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<std::string> needs;
};

bool read(const fs::path& path, std::string& to) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::ostringstream text;
  text << file.rdbuf();
  to = text.str();
  return true;
}

int fail(const std::string& text) {
  std::fprintf(stderr, "error: %s\n", text.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return fail("usage: modelc_embed FOLDER OUT.cpp [DEPFILE]");
  const fs::path folder(argv[1]);
  const std::set<std::string> features = {"subgroup", "int8", "int16", "float16", "storage16", "storage8", "broadcast"};
  std::vector<fs::path> families, inputs;
  for (const auto& e : fs::directory_iterator(folder))
    if (e.is_directory() && fs::exists(e.path() / (e.path().filename().string() + ".variants"))) families.push_back(e.path());
  std::sort(families.begin(), families.end());
  for (const auto& e : fs::directory_iterator(folder / "include")) inputs.push_back(e.path());
  std::sort(inputs.begin(), inputs.end());

  std::string out =
      "// Written by modelc_embed from shaders/; change those files, not this one.\n"
      "#include \"runtime/vulkan/shaders.h\"\n\nnamespace modelc::vulkan {\nnamespace {\n\nconst EmbeddedShader table[] = {\n";
  std::set<std::string> names;
  for (const fs::path& family : families) {
    const fs::path list = family / (family.filename().string() + ".variants");
    inputs.push_back(list);
    std::string text;
    if (!read(list, text)) return fail("cannot read " + list.string());
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const std::string where = list.string() + ":" + std::to_string(number) + ": ";
      line = line.substr(0, line.find('#'));
      std::istringstream words(line);
      Variant v;
      if (!(words >> v.name)) continue;
      if (!(words >> v.file)) return fail(where + "a variant has a name and a file");
      bool needs = false;
      for (std::string w; words >> w;) {
        if (w == "needs") {
          needs = true;
          continue;
        }
        if (needs) {
          if (!features.count(w)) return fail(where + "no feature is called " + w);
          v.needs.push_back(w);
          continue;
        }
        const std::size_t sign = w.find('=');
        if (sign == std::string::npos) return fail(where + "expected DEFINE=VALUE, found " + w);
        v.defines.emplace_back(w.substr(0, sign), w.substr(sign + 1));
      }
      if (!names.insert(v.name).second) return fail(where + "a second variant " + v.name);
      const fs::path file = family / v.file;
      if (std::find(inputs.begin(), inputs.end(), file) == inputs.end()) inputs.push_back(file);
      modelc::emit::ShaderSource source{
          "shaders/" + family.filename().string() + "/" + v.file, {}, v.defines, (folder / "include").string()};
      if (!read(file, source.text)) return fail(where + "cannot read " + file.string());
      auto words_of = modelc::emit::compile_shader(source);
      if (!words_of) return fail(where + words_of.error().text());
      std::string flags = "0";
      for (const std::string& n : v.needs) flags += " | needs_" + n;
      out += "    {\"" + v.name + "\", " + std::to_string(words_of->size() * 4) + ", " + flags + ",\n" +
             modelc::emit::literal_of(*words_of, 5) + "},\n";
    }
  }
  out +=
      "};\n\n}  // namespace\n\nstd::span<const EmbeddedShader> embedded_shaders() { return table; }\n\n}  // namespace modelc::vulkan\n";
  {
    std::ofstream file(argv[2], std::ios::binary);
    file << out;
    if (!file.flush()) return fail(std::string("cannot write ") + argv[2]);
  }
  if (argc > 3) {
    std::ofstream file(argv[3], std::ios::binary);
    file << argv[2] << ":";
    for (const fs::path& p : inputs) file << " \\\n  " << p.string();
    file << "\n";
    if (!file.flush()) return fail(std::string("cannot write ") + argv[3]);
  }
  return 0;
}
