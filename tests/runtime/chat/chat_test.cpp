// Texts against those of jinja2, set up as transformers does it; what is refused, and where; the bounds.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/base/json.h"
#include "runtime/chat/chat.h"
#include "runtime/chat/template.h"

using namespace modelc;

namespace {

const std::string folder = std::string(MODELC_SOURCE_DIR) + "/tests/runtime/chat/cases";

Json read(const std::string& name) {
  Result<JsonFile> file = read_json_file(folder + "/" + name);
  REQUIRE_MESSAGE(file, file.error().text());
  return std::move(file->root);
}

Result<std::string> rendered(const std::string& source, const Json& context, RenderOptions options = {}) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source, "t");
  if (!parsed) return std::move(parsed.error());
  return parsed->render(context, options);
}

void check(const std::string& source, const Json& context, const Json& expected, RenderOptions options) {
  CAPTURE(source);
  const Result<std::string> text = rendered(source, context, options);
  if (const std::string* wanted = expected.find("text")->as_string()) {
    REQUIRE_MESSAGE(text, text.error().text());
    CHECK(*text == *wanted);
    return;
  }
  const std::string& refused = *expected.find("refused")->as_string();
  CAPTURE(refused);
  REQUIRE(!text);
  const std::string& kind = text.error().kind;
  CAPTURE(text.error().message);
  CHECK(text.error().message.starts_with("t:"));
  if (refused == "TemplateSyntaxError") {
    CHECK((kind == "template-syntax" || kind == "template-unsupported"));
  } else if (refused == "TemplateError") {
    CHECK(kind == "template-raised");
    CHECK(text.error().message.ends_with("the template refuses: " + *expected.find("message")->as_string()));
  } else if (refused == "SecurityError" || refused == "TemplateAssertionError") {
    CHECK(kind == "template-unsupported");
  } else {
    CHECK(kind == "template-error");
  }
}

Error refusal(const std::string& source, RenderOptions options = {}) {
  JsonObject context;
  context.set("n", 7);
  context.set("s", "text");
  context.set("l", JsonArray{1, 2});
  const Result<std::string> text = rendered(source, context, options);
  CAPTURE(source);
  REQUIRE(!text);
  return text.error();
}

}  // namespace

TEST_CASE("published forms of templates, with conversations") {
  setenv("TZ", "UTC", 1);
  const Json file = read("templates.json");
  const JsonArray& conversations = *file.find("conversations")->as_array();
  RenderOptions options;
  options.now = static_cast<std::time_t>(*file.find("now")->as_int());
  std::size_t texts = 0;
  for (const Json& t : *file.find("templates")->as_array()) {
    CAPTURE(*t.find("name")->as_string());
    for (const Json& c : *t.find("cases")->as_array()) {
      const auto number = static_cast<std::size_t>(*c.find("conversation")->as_int());
      CAPTURE(number);
      check(*t.find("template")->as_string(), conversations[number], c, options);
      if (c.find("text")->as_string()) ++texts;
    }
  }
  CHECK(file.find("templates")->as_array()->size() >= 20);
  CHECK(texts > 80);
}

TEST_CASE("each thing of the language") {
  setenv("TZ", "UTC", 1);
  const Json file = read("language.json");
  RenderOptions options;
  options.now = static_cast<std::time_t>(*file.find("now")->as_int());
  for (const Json& c : *file.find("cases")->as_array()) check(*c.find("template")->as_string(), *file.find("variables"), c, options);
}

TEST_CASE("what is wrong has its line and column") {
  CHECK(refusal("a\n {{ missing.x }}").message == "t:2:12: `missing` is undefined, so it has no `x`");
  CHECK(refusal("{% if n %}\n{% for x in l %}{% endif %}").message == "t:2:20: `endif` ends or continues nothing");
  CHECK(refusal("\n{% if n %}x").message == "t:2:4: the block is not ended: expected `endif`");
  CHECK(refusal("{{ n ").message == "t:1:1: `{{` is not ended by `}}`");
  CHECK(refusal("{{ 'é' 1 }}").message == "t:1:8: expected `}}`, found `1`");
  CHECK(refusal("{% include 'x' %}").message == "t:1:4: the block `include` is not carried out");
  CHECK(refusal("{% include 'x' %}").kind == "template-unsupported");
  CHECK(refusal("{{ s | center(80) }}").message == "t:1:6: the filter `center` is not carried out");
  CHECK(refusal("{{ s.encode() }}").message == "t:1:12: the method `encode` of a string is not carried out");
  CHECK(refusal("{{ l.append(3) }}").message == "t:1:12: the method `append` of a list is not carried out");
  CHECK(refusal("{{ s % 3 }}").kind == "template-unsupported");
  CHECK(refusal("{{ s + n }}").message == "t:1:6: `+` between a string and a whole number has no meaning");
  CHECK(refusal("{{ s + n }}").help == "`~` joins the texts of any two values");
  CHECK(refusal("{{ s | trim(1, 2, 3) }}").message == "t:1:6: trim takes at most 1 argument, not 3");
  CHECK(refusal("{{ s | tojson(skipkeys=true) }}").message == "t:1:6: tojson has no argument `skipkeys` to give");
  CHECK(refusal("{{ 9223372036854775807 + 1 }}").kind == "template-limit");
  CHECK(refusal("{{ 9223372036854775808 }}").message == "t:1:4: the number 9223372036854775808 is too large");
  CHECK(refusal("{% set n.x = 1 %}").message == "t:1:8: only a namespace has attributes that can be set, and this is a whole number");
  CHECK(refusal("{% break %}").message == "t:1:4: `break` stands in no loop");
  CHECK(refusal("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}").message == "t:1:35: the macro `m` takes 1 argument, not 2");
  CHECK(ChatTemplate::parse("\xFF", "t").error().message == "t is not UTF-8");
}

TEST_CASE("depth, steps and output are bounded") {
  const auto many = [](const std::string& unit, int n) {
    std::string s;
    for (int i = 0; i < n; ++i) s += unit;
    return s;
  };
  for (const std::string& source :
       {many("{% if n %}", 100'000), "{{ " + many("(", 10'000) + "1" + many(")", 10'000) + " }}",
        "{{ " + many("[", 10'000) + many("]", 10'000) + " }}", "{{ " + many("not ", 100'000) + "n }}", "{{ " + many("-", 100'000) + "n }}",
        "{{ n" + many(".a", 100'000) + " }}", "{{ n" + many("|string", 100'000) + " }}", "{{ " + many("1 if n else ", 100'000) + "1 }}",
        many("{% for x in l %}", 300) + many("{% endfor %}", 300)})
    CHECK(refusal(source).kind == "template-limit");
  // A sum is a tree as deep as it is long.
  CHECK(refusal("{{ 1" + many(" + 1", 100'000) + " }}").kind == "template-limit");
  CHECK(refusal("{{ 1" + many(" + 1", 1'000'000) + " }}").kind == "template-limit");
  CHECK(refusal("{{ 1" + many(" and 1", 100'000) + " }}").kind == "template-limit");
  CHECK(refusal("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").kind == "template-limit");
  CHECK(refusal("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}").kind == "template-limit");
  CHECK(refusal("{% set ns = namespace(s='xxxxxxxx') %}{% for a in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}").kind ==
        "template-limit");
  CHECK(refusal("{% set ns = namespace(l=[1]) %}{% for a in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}").kind ==
        "template-limit");
  CHECK(refusal("{{ 'x' * 1000000000000 }}").kind == "template-limit");
  CHECK(refusal("{{ range(1000000) }}").kind == "template-limit");
  CHECK(refusal("{{ 'aaaaaaaaaaaaaaaaaaaaaaaa' * 10000 | replace('a', 'b' * 10000) }}").kind == "template-error");
  CHECK(refusal("{{ ('a' * 100000) | replace('a', 'b' * 10000) }}").kind == "template-limit");
  CHECK(refusal("{% set ns = namespace() %}{% set ns.a = {'ns': ns} %}{{ ns.a | tojson }}").kind == "template-error");
  CHECK(refusal("{{ 'x'.ljust(999999999999) }}").kind == "template-limit");
  RenderOptions small;
  small.max_output = 10;
  CHECK(refusal("{{ s }}{{ s }}{{ s }}", small).kind == "template-limit");
  JsonObject context;
  CHECK(*rendered("{% set ns = namespace() %}{% set ns.a = ns %}ok", context) == "ok");  // freed all the same
}

TEST_CASE("a checkpoint's template and tokens") {
  const auto place = std::filesystem::temp_directory_path() / "modelc_chat_test";
  std::filesystem::remove_all(place);
  std::filesystem::create_directories(place);
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(place / name) << text; };
  CheckpointIndex index;
  CHECK(!*ChatFormat::of(index));
  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "pad_token": null,
            "chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}{{ tools }}"})");
  index.tokenizer_config_json = (place / "tokenizer_config.json").string();
  const JsonArray messages = {chat_message("user", "hi")};
  {
    const auto format = ChatFormat::of(index);
    REQUIRE_MESSAGE(format, format.error().text());
    REQUIRE(*format);
    CHECK(*(*format)->text(messages) == "<s>hi</s>None");
    CHECK((*format)->source() == "tokenizer_config.json: chat_template");
  }
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "plain"},
                                                       {"name": "tool_use", "template": "with {{ tools | length }}"}]})");
  {
    const auto format = ChatFormat::of(index);
    REQUIRE(format);
    ChatOptions options;
    CHECK(*(*format)->text(messages, options) == "plain");
    options.tools.push_back(JsonObject());
    CHECK(*(*format)->text(messages, options) == "with 1");
  }
  write("chat_template.jinja", "from the file{{ extra }}");
  index.chat_template = (place / "chat_template.jinja").string();
  {
    const auto format = ChatFormat::of(index);
    REQUIRE(format);
    ChatOptions options;
    options.variables.set("extra", "!");
    CHECK(*(*format)->text(messages, options) == "from the file!");
  }
  write("chat_template.jinja", "\n{{ n | nothing");
  CHECK(ChatFormat::of(index).error().message == "chat_template.jinja:2:1: `{{` is not ended by `}}`");
  write("tokenizer_config.json", R"({"chat_template": 3})");
  index.chat_template.clear();
  CHECK(ChatFormat::of(index).error().message ==
        "tokenizer_config.json:1: chat_template is no template: expected a string, or a list of named ones");
  write("tokenizer_config.json", R"({"bos_token": 3})");
  CHECK(ChatFormat::of(index).error().kind == "chat-field");
  CheckpointIndex gguf;
  MetadataBuilder builder;
  const std::vector<std::string> vocabulary = {"<a>", "<b>"};
  builder.add_strings("tokenizer.ggml.tokens", vocabulary)
      .add_u32("tokenizer.ggml.bos_token_id", 1)
      .add_u32("tokenizer.ggml.eos_token_id", 9);
  builder.add_string("tokenizer.chat_template", "{{ bos_token }}{{ eos_token is defined }}{{ messages[0].role }}");
  gguf.metadata = builder.build();
  {
    const auto format = ChatFormat::of(gguf);
    REQUIRE(format);
    CHECK(*(*format)->text(messages) == "<b>Falseuser");
  }
  std::filesystem::remove_all(place);
}
