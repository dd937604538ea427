#!/usr/bin/env python3
"""Chat templates for the formats of published models, written here from the descriptions of those formats (the marks, who
speaks when, where functions and results go), and what jinja2 makes of conversations with them; then small templates, one for each thing of the language.

    python3 make_cases.py            write templates.json and language.json here
    python3 make_cases.py --check    compare with what is here; exit 1 if it differs

jinja2 is set up as transformers does it: trim_blocks, lstrip_blocks, loop controls, an immutable sandbox, tojson without HTML
escapes, raise_exception and strftime_now. Needs the packages jinja2 and, for the `generation` block, transformers.
"""
import argparse
import json
import sys
from datetime import datetime, timezone
from pathlib import Path

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = Path(__file__).resolve().parent
NOW = 1722470400  # 2024-08-01 00:00:00 UTC


class Generation(Extension):
    """{% generation %}: the text as it is."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.fromtimestamp(NOW, timezone.utc).strftime(form)
    return env


T = {}
# ChatML: each message between two marks, the role on the first line.
T["chatml"] = """{%- macro turn(role, text) -%}
<|im_start|>{{ role }}
{{ text }}<|im_end|>
{% endmacro -%}
{% for m in messages %}{{ turn(m.role, m.content) }}{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
# The same, with a system message of its own where the conversation brings none.
T["smollm2"] = """{% set given = messages | map(attribute='role') | first %}
{% if messages and given != 'system' %}
<|im_start|>system
Answer in one sentence.<|im_end|>
{% endif %}
{% for m in messages %}
{{ ['<|im_start|>', m.role, '\\n', m.content, '<|im_end|>'] | join }}
{% endfor %}
{{ '<|im_start|>assistant\\n' if add_generation_prompt }}"""
# Llama 2: a question and its answer between <s> and </s>; the system's words stand inside the first question.
T["llama2"] = """{% set at = namespace(prefix='', turn=0) %}
{% for m in messages %}
{% if m.role == 'system' and loop.first %}
{% set at.prefix = '<<SYS>>\\n' ~ m.content ~ '\\n<</SYS>>\\n\\n' %}
{% elif (at.turn is even) != (m.role == 'user') %}
{{ raise_exception('a question and an answer by turns, please; this is number ' ~ at.turn) }}
{% else %}
{% if m.role == 'user' %}
{{ bos_token }}[INST] {{ at.prefix ~ m.content | trim }} [/INST]
{% set at.prefix = '' %}
{% else %}
{{ ' ' ~ m.content.strip() ~ ' ' ~ eos_token }}
{% endif %}
{% set at.turn = at.turn + 1 %}
{% endif %}
{% endfor %}"""
# Llama 3: the role between header marks, a blank line, the text, an end mark.
T["llama3"] = """{%- macro header(role) -%}<|start_header_id|>{{ role }}<|end_header_id|>{{ '\\n\\n' }}{%- endmacro -%}
{{- bos_token if messages -}}
{%- for m in messages -%}{{ header(m.role) }}{{ m.content | trim }}<|eot_id|>{%- endfor -%}
{%- if add_generation_prompt %}{{ header('assistant') }}{% endif -%}"""
# Llama 3.1: the date in the system's turn; functions as JSON with the first question; results as the role ipython.
T["llama3_1"] = """{%- macro open(role) %}{{ '<|start_header_id|>' ~ role ~ '<|end_header_id|>\\n\\n' }}{% endmacro %}
{%- set day = date_string | default(strftime_now('%d %b %Y') if strftime_now is defined else '1 Jan 2024') %}
{%- set functions = tools | default([], true) %}
{%- set begins = messages[0].role == 'system' if messages else false %}
{%- set rest = messages[1:] if begins else messages %}
{{- bos_token }}{{ open('system') }}
{%- if functions %}{{ 'Environment: ipython\\n' }}{% endif %}
{{- 'Today Date: ' ~ day ~ '\\n\\n' }}
{%- if begins %}{{ messages[0].content.strip() }}{% endif %}
{{- '<|eot_id|>' }}
{%- if functions and not rest %}
  {{- raise_exception('functions go with the first question, and there is none') }}
{%- endif %}
{%- for m in rest %}
  {%- if m.tool_calls %}
    {%- if m.tool_calls | length > 1 %}{{ raise_exception('one call at a time') }}{% endif %}
    {%- with call = (m.tool_calls | first).function %}
      {{- open('assistant') }}{"name": {{ call.name | tojson }}, "parameters": {{ call.arguments | tojson }}}<|eot_id|>
    {%- endwith %}
  {%- elif m.role in ['tool', 'ipython'] %}
    {{- open('ipython') }}
    {{- m.content if m.content is string else m.content | tojson }}
    {{- '<|eot_id|>' }}
  {%- else %}
    {{- open(m.role) }}
    {%- if functions and loop.first %}
      {{- 'To use a function, write its call as one line of JSON.\\n\\n' }}
      {%- for f in functions %}{{ f | tojson(indent=4) ~ '\\n\\n' }}{% endfor %}
    {%- endif %}
    {{- m.content | trim ~ '<|eot_id|>' }}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ open('assistant') }}{% endif %}
"""
# Mistral with functions: they stand before the last question, results in marks of their own, the system's words in that question.
T["mistral"] = """{%- set seen = namespace(system='', expected='user', last=-1) %}
{%- for m in messages %}
  {%- if m.role == 'user' %}{% set seen.last = loop.index0 %}{% endif %}
  {%- if m.role == 'system' %}
    {%- set seen.system = m.content ~ '\\n\\n' %}
  {%- elif m.role in ('user', 'assistant') and not m.tool_calls %}
    {%- if m.role != seen.expected %}{{ raise_exception('roles alternate: ' ~ seen.expected ~ ' was to come') }}{% endif %}
    {%- set seen.expected = {'user': 'assistant', 'assistant': 'user'}[m.role] %}
  {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for m in messages if m.role != 'system' %}
  {%- if m.role == 'user' %}
    {%- set final = messages[seen.last] == m %}
    {%- if tools and final %}
      {%- set texts = namespace(all=[]) %}
      {%- for tool in tools %}
        {%- set parts = namespace(all=[]) %}
        {%- for key, value in tool.function | items if key != 'return' %}
          {%- set parts.all = parts.all + [key | tojson ~ ': ' ~ value | tojson] %}
        {%- endfor %}
        {%- set texts.all = texts.all + ['{"type": "function", "function": {' ~ parts.all | join(', ') ~ '}}'] %}
      {%- endfor %}
      {{- '[AVAILABLE_TOOLS] [' ~ texts.all | join(', ') ~ '][/AVAILABLE_TOOLS]' }}
    {%- endif %}
    {{- '[INST] ' ~ (seen.system if final else '') ~ m.content ~ '[/INST]' }}
  {%- elif m.tool_calls %}
    {{- '[TOOL_CALLS] [' }}
    {%- for call in m.tool_calls %}
      {%- if (call.id | default('', true)) | length != 9 %}{{ raise_exception('the id of a call has nine characters') }}{% endif %}
      {{- (call.function | tojson)[:-1] ~ ', "id": ' ~ call.id | tojson ~ '}' }}
      {{- ', ' if not loop.last else ']' ~ eos_token }}
    {%- endfor %}
  {%- elif m.role == 'tool' %}
    {{- '[TOOL_RESULTS] {"content": ' ~ m.content ~ ', "call_id": "' ~ m.tool_call_id ~ '"}[/TOOL_RESULTS]' }}
  {%- else %}
    {{- ' ' ~ m.content.strip() ~ eos_token }}
  {%- endif %}
{%- endfor %}
"""
# Gemma: turns of user and model; no system.
T["gemma"] = """{%- set names = {'user': 'user', 'assistant': 'model'} -%}
{{- bos_token -}}
{%- for m in messages -%}
  {%- set wanted = 'user' if loop.index is odd else 'assistant' -%}
  {%- if m.role != wanted -%}
    {{- raise_exception('message ' ~ loop.index ~ ' is ' ~ m.role ~ "'s, not " ~ wanted ~ "'s") -}}
  {%- endif -%}
  <start_of_turn>{{ names[m.role] ~ '\\n' ~ m.content.strip() }}<end_of_turn>{{ '\\n' }}
{%- endfor -%}
{{- '<start_of_turn>model\\n' if add_generation_prompt else '' -}}"""
# Gemma 3: a system's words before the first question; a message may be a list of texts and pictures.
T["gemma3"] = """{%- macro body(content) -%}
  {%- if content is string -%}{{ content | trim }}
  {%- elif content is sequence -%}
    {%- for piece in content -%}
      {%- if piece.type == 'text' -%}{{ piece.text | trim }}
      {%- elif piece.type == 'image' -%}<start_of_image>
      {%- endif -%}
    {%- endfor -%}
  {%- else -%}{{ raise_exception('a message is a text or a list') }}
  {%- endif -%}
{%- endmacro -%}
{%- set lead = namespace(text='', asked=0) -%}
{{- bos_token -}}
{%- for m in messages -%}
  {%- if m.role == 'system' and loop.first -%}
    {%- set lead.text = (m.content if m.content is string else m.content[0].text) ~ '\\n\\n' -%}
  {%- else -%}
    {%- if (m.role == 'user') == (lead.asked is odd) -%}{{ raise_exception('turns alternate') }}{%- endif -%}
    {{- '<start_of_turn>' ~ ('user' if m.role == 'user' else 'model') ~ '\\n' ~ lead.text ~ body(m.content) ~ '<end_of_turn>\\n' -}}
    {%- set lead.text = '' -%}
    {%- set lead.asked = lead.asked + 1 -%}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}
"""
# Phi-3: a mark for the role on a line, the text, an end mark.
T["phi3"] = """{% for m in messages if m.role in ['system', 'user', 'assistant'] %}
<|{{ m.role }}|>
{{ m.content }}<|end|>
{% endfor %}
{% if add_generation_prompt %}
<|assistant|>
{% else %}
{{- eos_token }}
{%- endif %}"""
# Phi-4: as ChatML with a separator; the answer's own text is marked as generated.
T["phi4"] = """{%- for m in messages -%}
<|im_start|>{{ m.role }}<|im_sep|>
{%- if m.role == 'assistant' -%}{% generation %}{{ m.content ~ '<|im_end|>' }}{% endgeneration %}
{%- else -%}{{ m.content ~ '<|im_end|>' }}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant<|im_sep|>{% endif -%}"""
# Qwen 2.5: functions in the system's turn, calls in <tool_call>, results together in one turn of the user.
T["qwen2_5"] = """{%- set own = messages[0].content if messages and messages[0].role == 'system' else 'You help.' %}
{{- '<|im_start|>system\\n' ~ own }}
{%- if tools %}
  {{- '\\n\\n# Tools\\n\\nFunctions that may be called, one a line:\\n<tools>\\n' ~ tools | map('tojson') | join('\\n') ~ '\\n</tools>' }}
  {{- '\\nA call is JSON with "name" and "arguments" between <tool_call> and </tool_call>.' }}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- for m in messages %}
  {%- set before = loop.previtem.role if loop.previtem is defined else '' %}
  {%- set after = loop.nextitem.role if loop.nextitem is defined else '' %}
  {%- if m.role == 'tool' %}
    {{- '<|im_start|>user' if before != 'tool' }}
    {{- '\\n<tool_response>\\n%s\\n</tool_response>' | replace('%s', m.content) }}
    {{- '<|im_end|>\\n' if after != 'tool' }}
  {%- elif m.role != 'system' or not loop.first %}
    {{- '<|im_start|>' ~ m.role }}
    {%- if m.content %}{{ '\\n' ~ m.content }}{% endif %}
    {%- for call in m.tool_calls or [] %}
      {%- set f = call.function if 'function' in call else call %}
      {{- '\\n<tool_call>\\n{"name": "' ~ f.name ~ '", "arguments": ' ~ f.arguments | tojson ~ '}\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
  {%- endif %}
{%- endfor %}
{{- '<|im_start|>assistant\\n' if add_generation_prompt }}
"""
# Qwen 3: thoughts stay in answers after the last question and go from earlier ones; they can be turned off.
T["qwen3"] = """{%- macro say(role, text) %}{{ '<|im_start|>' ~ role ~ '\\n' ~ text ~ '<|im_end|>\\n' }}{% endmacro %}
{%- set asked = namespace(at=-1) %}
{%- for m in messages %}
  {%- if m.role == 'user' and m.content is string and not m.content.startswith('<tool_response>') %}
    {%- set asked.at = loop.index0 %}
  {%- endif %}
{%- endfor %}
{%- for m in messages %}
  {%- set text = m.content if m.content is string else '' %}
  {%- if m.role == 'assistant' %}
    {%- set parts = text.rsplit('</think>', 1) %}
    {%- set thought = m.reasoning_content if m.reasoning_content is string else (parts[0].split('<think>') | last).strip('\\n') if parts | length == 2 else '' %}
    {%- set spoken = (parts | last).lstrip('\\n') %}
    {%- set shown = namespace(text=spoken) %}
    {%- if loop.index0 > asked.at and (loop.last or thought) %}
      {%- set shown.text = '<think>\\n' ~ thought ~ '\\n</think>\\n\\n' ~ spoken %}
    {%- endif %}
    {%- for call in m.tool_calls or [] %}
      {%- set f = call.function or call %}
      {%- set arguments = f.arguments if f.arguments is string else f.arguments | tojson %}
      {%- set shown.text = shown.text ~ ('\\n' if shown.text else '') ~ '<tool_call>\\n{"name": ' ~ f.name | tojson ~ ', "arguments": ' ~ arguments ~ '}\\n</tool_call>' %}
    {%- endfor %}
    {{- say('assistant', shown.text) }}
  {%- elif m.role == 'tool' %}
    {%- if loop.first or messages[loop.index0 - 1].role != m.role %}{{ '<|im_start|>user' }}{% endif %}
    {{- '\\n<tool_response>\\n' ~ text ~ '\\n</tool_response>' }}
    {%- if loop.last or messages[loop.index].role != m.role %}{{ '<|im_end|>\\n' }}{% endif %}
  {%- else %}
    {{- say(m.role, text) }}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|im_start|>assistant\\n' ~ ('<think>\\n\\n</think>\\n\\n' if enable_thinking is defined and not enable_thinking else '') }}
{%- endif %}"""
# DeepSeek: wide marks, all systems' words first, of an earlier answer only what stands after its thoughts.
T["deepseek"] = """{%- set after = namespace(tool=false) -%}
{{- bos_token ~ messages | selectattr('role', 'equalto', 'system') | map(attribute='content') | join('') -}}
{%- for m in messages if m.role != 'system' -%}
  {%- if m.role == 'user' -%}<｜User｜>{{ m.content }}
  {%- elif m.role == 'tool' -%}<｜tool▁output▁begin｜>{{ m.content }}<｜tool▁output▁end｜>
  {%- elif m.content is not none -%}
    {{- '<｜tool▁outputs▁end｜>' ~ m.content if after.tool else '<｜Assistant｜>' ~ m.content.split('</think>') | last -}}
    <｜end▁of▁sentence｜>
  {%- endif -%}
  {%- set after.tool = m.role == 'tool' -%}
{%- endfor -%}
{%- if (add_generation_prompt | default(false)) and not after.tool -%}<｜Assistant｜>{%- endif -%}"""
# Zephyr: a mark, a line, the text with the end of the text.
T["zephyr"] = """{% set marks = {'user': '<|user|>', 'system': '<|system|>', 'assistant': '<|assistant|>'} %}
{% for m in messages if marks[m.role] is defined %}
{{ marks[m.role] }}
{{ m.content ~ eos_token }}
{% endfor %}
{% if add_generation_prompt and messages %}
{{ marks.assistant }}
{% endif %}"""
# Vicuna: one line of names and texts, after an introduction.
T["vicuna"] = """{%- set spoken = messages | rejectattr('role', 'equalto', 'system') | list %}
{%- set intro = messages | selectattr('role', 'equalto', 'system') | map(attribute='content') | first | default('Someone asks an assistant, who answers.', true) %}
{{- intro }}
{%+ for m in spoken %}{% if m.role == 'user' %} USER: {{ m.content.strip() }}{% elif m.role == 'assistant' %} ASSISTANT: {{ m.content | trim ~ eos_token }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ ' ASSISTANT:' }}{% endif %}"""
# Alpaca: headings and texts.
T["alpaca"] = """{% macro part(name, text='') -%}
### {{ name }}:
{{ text | trim }}
{% endmacro %}
{% for m in messages %}
{% if m.role == 'system' %}
{{ m.content }}

{% elif m.role == 'user' %}
{{ part('Instruction', m.content) }}
{% else %}
{{ part(text=m.content, name='Response') }}
{% endif %}
{% endfor %}
{% if add_generation_prompt %}
### Response:
{% endif %}
"""
# Command R: a mark for each turn and one for who speaks.
T["command_r"] = """{%- macro turn(who, text) -%}
<|START_OF_TURN_TOKEN|><|{{ who | upper }}_TOKEN|>{{ text }}
{%- endmacro -%}
{{- bos_token -}}
{%- for m in messages -%}
  {%- if m.role == 'system' -%}{{ turn('system', m.content) }}
  {%- else -%}{{ turn('chatbot' if m.role == 'assistant' else m.role, m.content.strip()) }}
  {%- endif -%}
  <|END_OF_TURN_TOKEN|>
{%- endfor -%}
{{- turn('chatbot', '') if add_generation_prompt -}}"""
# Command R with functions: each is described as a Python function.
T["command_r_tools"] = """{%- macro python(schema) -%}
  {%- set simple = dict(string='str', number='float', integer='int', boolean='bool') -%}
  {%- if schema.type is string -%}
    {%- if schema.type == 'array' -%}List[{{ python(schema['items']) }}]
    {%- else -%}{{ simple.get(schema.type, 'Any') }}
    {%- endif -%}
  {%- elif schema.type is sequence -%}
    {%- for kind in schema.type -%}{{ ' | ' if not loop.first }}{{ python(dict(type=kind)) }}{%- endfor -%}
  {%- else -%}Any
  {%- endif -%}
{%- endmacro -%}
{%- macro signature(f) -%}
  def {{ f.name }}(
  {%- for name, schema in f.parameters.properties | dictsort -%}
    {{- ', ' if not loop.first }}{{ name }}: {{ python(schema) }}{{ '' if name in f.parameters.required else ' = None' }}
  {%- endfor -%}
  ):
  {{- '\\n' ~ ('\\"\\"\\"' ~ f.description ~ '\\"\\"\\"') | indent(4, true) ~ '\\n' }}
{%- endmacro -%}
{{- bos_token }}
{%- for tool in tools or [] %}
{%- if loop.first %}{{ '# Functions\\n' }}{% endif %}
{{- '```python\\n' ~ signature(tool.function) ~ '```\\n' }}
{%- endfor %}
{%- for m in messages %}
  {%- set who = {'assistant': 'CHATBOT', 'user': 'USER'}.get(m.role, 'SYSTEM') %}
  {%- set called = m.tool_calls | default([], true) | map(attribute='function') | map(attribute='name') | join(', ') %}
  {{- '<|' ~ who ~ '|>' ~ (m.content or '') ~ called }}
{%- endfor %}"""
# Granite: roles between marks; functions in a turn of their own; the date where no system speaks.
T["granite"] = """{%- macro part(role, text) %}<|start_of_role|>{{ role }}<|end_of_role|>{{ text }}<|end_of_text|>
{% endmacro %}
{%- if not messages or messages[0].role != 'system' %}
  {{- part('system', 'It is ' ~ strftime_now('%B %d, %Y') ~ '.' ~ (' Functions are at hand.' if tools else '')) }}
{%- endif %}
{%- for m in messages %}
  {%- if tools and (loop.first and m.role != 'system' or loop.index == 2 and messages[0].role == 'system') %}
    {{- part('tools', tools | tojson(indent=2)) }}
  {%- endif %}
  {{- part(m.role, m.content or m.tool_calls | tojson) }}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|start_of_role|>assistant' ~ (' ' ~ controls | tojson if controls else '') ~ '<|end_of_role|>' }}
{%- endif %}"""
# Falcon: names and texts, a line each.
T["falcon"] = """{%- set names = {'system': 'System', 'user': 'User', 'assistant': 'Falcon'} -%}
{%- set lines = namespace(all=[]) -%}
{%- for m in messages if m.role in names -%}
  {%- set text = m.content | trim if m.role != 'assistant' else m.content -%}
  {%- if m.role == 'user' -%}{%- set text = text | replace('\\r\\n', '\\n') | replace('\\n\\n', '\\n') -%}{%- endif -%}
  {%- set lines.all = lines.all + [names[m.role] ~ ': ' ~ text] -%}
{%- endfor -%}
{{- (lines.all + (['Falcon:'] if add_generation_prompt else [])) | join('\\n') -}}"""
# OLMo: the text begins with the end mark; answers end with it.
T["olmo"] = """{{ eos_token }}{% for m in messages %}
{% set ends = eos_token if m.role == 'assistant' else '' %}
{{- '<|' ~ m.role ~ '|>\\n' ~ m.content ~ ends ~ ('' if loop.last and ends else '\\n') }}
{%- if loop.last and add_generation_prompt %}<|assistant|>
{% endif %}
{%- endfor %}"""
# Yi: the question opens the answer's turn at once.
T["yi"] = """{%- for m in messages -%}
  {%- if m.role == 'user' -%}
    {{- '<|im_start|>user\\n%(q)<|im_end|>\\n<|im_start|>assistant\\n' | replace('%(q)', m.content) -}}
  {%- elif m.role == 'assistant' -%}
    {{- m.content ~ '<|im_end|>\\n' -}}
  {%- elif loop.first -%}
    {{- m.content -}}
  {%- endif -%}
{%- endfor -%}"""

TOOLS = [
    {"type": "function", "function": {
        "name": "weather", "description": "The weather\nof a place & <time>, \"now\" unless given.",
        "parameters": {"type": "object", "properties": {
            "place": {"type": "string", "description": "Ville, città, 市"}, "days": {"type": "integer", "minimum": 0},
            "units": {"type": "array", "items": {"type": "string"}}, "x": {"type": ["number", "boolean"]}}, "required": ["place"]}}},
    {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {
        "type": "object", "properties": {}, "required": []}, "return": {"type": "string"}}},
]
U = lambda text: {"role": "user", "content": text}
A = lambda text: {"role": "assistant", "content": text}
S = lambda text: {"role": "system", "content": text}
CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "abcde1234", "type": "function", "function": {"name": "weather", "arguments": {"place": "Łódź", "days": 2, "ratio": 0.5}}}]}
ANSWER = {"role": "tool", "name": "weather", "tool_call_id": "abcde1234", "content": "{\"sky\": \"clear\"}"}
CONVERSATIONS = [
    dict(messages=[U("  What is the capital of France?\n")]),
    dict(messages=[S("Be  brief."), U("Hi"), A("Hello! 👋"), U("Two\n\nlines?")]),
    dict(messages=[U("1"), A("<think>\nhmm\n</think>\n\nyes"), U("2"), A("done")], add_generation_prompt=False),
    dict(messages=[S(" You call tools. "), U("Weather?"), CALL, ANSWER, A("Clear."), U("Thanks")], tools=TOOLS),
    dict(messages=[U("Weather?"), CALL, ANSWER], tools=TOOLS[:1], enable_thinking=False),
    dict(messages=[U("a"), U("b")]),
    dict(messages=[U([{"type": "image"}, {"type": "text", "text": " what is this "}])]),
    dict(messages=[]),
]

# One line each: a template, rendered with the variables of VARIABLES.
VARIABLES = {"name": "wörld", "n": 7, "f": 2.5, "big": 1e20, "small": 0.00001, "yes": True, "no": False, "nothing": None, "list": [3, 1, 2],
             "words": ["b", "A", "c", "a"], "d": {"b": 1, "A": [1, "x"], "c": {"k": None}}, "text": "  The quick\tbrown fox\n jumps\n\n over  ",
             "people": [{"name": "Ann", "age": 30, "tags": ["x"]}, {"name": "bob", "age": 25}, {"name": "Cid", "age": 30, "tags": []}],
             "quote": "it's \"so\" \\ \u00a0\u0007é😀", "empty": ""}
LANGUAGE = r"""
{{ name }} {{ n }} {{ f }} {{ big }} {{ small }} {{ yes }} {{ nothing }} {{ list }} {{ d }} {{ missing }}|
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 7.5 % 2 }} {{ 1_000 }}
{{ 1.0 }} {{ 100000000000000000.0 }} {{ 1e16 }} {{ 1e15 }} {{ 0.1 + 0.2 }} {{ 1e-4 }} {{ 1e-5 }} {{ 123456.789e3 }} {{ 10 / 5 }}
{{ 'a' ~ 1 ~ none ~ true }} {{ 'ab' * 3 }} {{ [1] * 2 + [3] }} {{ 'x' 'y' }} {{ "\u00e9\x41\n\\" }}
{{ quote }} {{ [quote] }} {{ quote | tojson }} {{ {'q': quote} | tojson(ensure_ascii=true) }} {{ ["it's", 'say "x"', "a\tb"] }}
{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ not 1 == 2 }} {{ 1 in [1] }} {{ 'z' not in 'abc' }} {{ 'b' in d }}
{{ yes and no }} {{ empty or 'x' }} {{ nothing or 0 }} {{ 'a' if yes else 'b' }} {{ 'a' if no }}| {{ missing is defined }} {{ missing | default('d') }} {{ empty | default('e', true) }}
{{ list[0] }} {{ list[-1] }} {{ list[9] }} {{ list[1:] }} {{ list[::-1] }} {{ name[1] }} {{ name[::-1] }} {{ name[-3:-1] }} {{ list[:-1] }} {{ list[5:1] }} {{ (1, 2, 3)[1:] }}
{{ d.b }} {{ d['A'][1] }} {{ d.c.k }} {{ d.zz }} {{ d['items'] is defined }} {{ d.get('b') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ d.keys() | list }} {{ d.values() | list }}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %} {% for k in d %}{{ k }}{% endfor %} {% for k, v in d | dictsort %}{{ k }}{% endfor %} {{ d | items | list }}
{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }} {% endfor %}
{% for x in list if x > 1 %}{{ loop.index }}:{{ x }} {% else %}none{% endfor %}{% for x in [] %}{{ x }}{% else %}empty{% endfor %}{% for x in missing %}{% else %}undefined{% endfor %}
{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %} {% for x in list %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for a, b in [(1, 2), [3, 4]] %}{{ a }}-{{ b }} {% endfor %}{% for c in 'héy' %}[{{ c }}]{% endfor %}
{% for x in [1, [2, [3]]] recursive %}{% if x is iterable %}<{{ loop(x) }}>{% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}
{% for x in [1, 1, 2] %}{% if loop.changed(x) %}{{ x }}{% endif %}{% endfor %}
{% set x = 1 %}{% for i in list %}{% set x = i %}{{ x }}{% endfor %}{{ x }} {% if true %}{% set x = 9 %}{% endif %}{{ x }}
{% set ns = namespace(a=1, l=[]) %}{% for i in list %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }} {% set a, b = 1, 'z' %}{{ a }}{{ b }} {% set t = 1, 2 %}{{ t }}
{% set block %}  in {{ name }}  {% endset %}[{{ block }}] {% set up | upper | trim %} in {{ name }} {% endset %}[{{ up }}]
{% macro m(a, b='B', c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 2) }} {{ m(b=3, a=4) }} {{ m() }}| {{ m(1) | length }}
{% macro tree(n) %}({% if n > 0 %}{{ tree(n - 1) }}{{ n }}{% endif %}){% endmacro %}{{ tree(3) }}
{% macro wrap(tag) %}<{{ tag }}>{{ caller(tag | upper) }}</{{ tag }}>{% endmacro %}{% call(x) wrap('b') %}in {{ x }}{% endcall %}
{% filter upper | replace('O', '0') %}hello {{ name }}{% endfilter %} {% with q = 5, r = 6 %}{{ q + r }}{% endwith %}{{ q is defined }}
{% raw %}{{ not }} {% this %}{% endraw %} {# a comment {{ x }} #}after
a  {%- if true -%}  b  {%- endif -%}  c  {{- ' d ' -}}  e
{{ text | trim }}| {{ text.strip() }}| {{ text.lstrip() }}| {{ 'xxaxx'.strip('x') }} {{ 'xyax'.rstrip('xy') }} {{ '--a-' | trim('-') }}
{{ text.split() }} {{ text.split('\n') }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ ' a  b c '.split(none, 1) }} {{ ''.split(',') }} {{ ''.split() }}
{{ 'a\nb\r\nc\n'.splitlines() }} {{ 'hello'.startswith('he') }} {{ 'hello'.endswith(('x', 'lo')) }} {{ 'hello'.find('l') }} {{ 'hello'.rfind('l') }} {{ 'hello'.count('l') }} {{ 'a-b-c'.partition('-') }}
{{ 'hello wörld-x (y' | title }} {{ "they're bill's" | title }} {{ "they're bill's".title() }} {{ 'hELLO wORLD' | capitalize }} {{ 'straße' | upper }} {{ 'ÄÖ' | lower }} {{ 'abc'.upper() }} {{ 'a1'.isalnum() }} {{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }}
{{ 'aXbXc' | replace('X', '-') }} {{ 'aXbXc' | replace('X', '-', 1) }} {{ 'aXbX'.replace('X', '') }} {{ 'abc' | replace('', '.') }} {{ 'prefix-a'.removeprefix('prefix-') }} {{ '7'.zfill(3) }} {{ 'a'.center(4, '*') }} {{ 'ab'.center(5, '*') }} {{ 'a'.ljust(3) }}|
{{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ words | sort(reverse=true) }} {{ list | sort | join(', ') }} {{ words | unique | list }} {{ list | max }} {{ list | min }} {{ list | sum }} {{ list | reverse | list }} {{ 'abc' | reverse }}
{{ people | map(attribute='name') | join(' ') }} {{ words | map('upper') | list }} {{ people | map(attribute='tags', default=['-']) | list }} {{ people | sort(attribute='age') | map(attribute='name') | list }} {{ people | sum(attribute='age') }}
{{ people | selectattr('age', 'equalto', 30) | map(attribute='name') | list }} {{ people | rejectattr('tags', 'defined') | map(attribute='name') | list }} {{ people | selectattr('tags') | list | length }} {{ list | select('odd') | list }} {{ list | reject('gt', 1) | list }} {{ [0, 1, '', 'a'] | select | list }}
{{ list | first }} {{ list | last }} {{ [] | first }}| {{ 'abc' | first }} {{ list | length }} {{ 'wörld' | count }} {{ d | length }} {{ missing | length }} {{ 3.7 | int }} {{ '12' | int }} {{ 'x' | int }} {{ 'x' | int(5) }} {{ '2.5' | float }} {{ 3 | float }} {{ -3 | abs }} {{ 2.567 | round(1) }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.1 | round(method='ceil') }}
{{ 'abc' | list }} {{ (1, 2) | list }} {{ 5 | string ~ 'x' }} {{ 'a\nb\n\nc' | indent }} {{ 'a\nb' | indent(2, true) }} {{ 'a\n\nb' | indent('> ', blank=true) }} {{ [1, 2, 3] | batch(2) | list }} {{ [1, 2, 3] | batch(2, 0) | list }} {{ 'a bc d' | wordcount }}
{{ d | tojson }} {{ d | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ d | tojson(sort_keys=true) }} {{ [1, {}] | tojson(separators=(',', ':')) }} {{ f | tojson }} {{ nothing | tojson }} {{ [true, 'é', 1e20] | tojson }} {{ (1, 2) | tojson }}
{{ n is number }} {{ f is float }} {{ n is integer }} {{ yes is number }} {{ yes is boolean }} {{ name is string }} {{ d is mapping }} {{ d is iterable }} {{ list is sequence }} {{ n is iterable }} {{ nothing is none }} {{ missing is undefined }} {{ n is odd }} {{ n is divisibleby 7 }} {{ n is even }} {{ yes is true }} {{ 1 is true }} {{ no is false }} {{ n is sameas n }} {{ 'a' is lower }} {{ 'A' is upper }} {{ 1 is in [1] }} {{ n is eq 7 }} {{ n is not none }} {{ n is gt 3 and n is lt(9) }} {{ range is callable }}
{{ range(3) | list }} {{ range(1, 7, 2) | list }} {{ range(3, 0, -1) | list }} {{ dict(a=1, b='x') }} {{ [1, 2].index(2) }} {{ [1, 1].count(1) }} {{ ','.join(['a', 'b']) }} {{ 'a' in ('a', 'b') }} {{ () }} {{ (1,) }} {{ {} }} {{ [[]] }}
{{ strftime_now('%Y-%m-%d') }} {{ strftime_now is defined }} {{ raise_exception is defined }} {{ people[0]['name'] }} {{ people[0].missing }}| {{ people[-1].name[0] }} {{ (people | first).name }} {{ people | map(attribute='name') | map('lower') | list }}
{{ n | default(1) + 1 }} {{ -n | abs }} {{ not no }} {{ (not yes) or yes }} {{ 1 if no else 2 if no else 3 }} {{ [1, 2,] }} {{ {'a': 1,} }} {{ 'a' == "a" }} {{ none == missing }} {{ [1] == [1] }} {{ {'a': 1} == {'a': 1.0} }} {{ list | join('-') | upper }}
{% if n > 5 and not (n == 6) %}big{% elif n %}some{% else %}zero{% endif %}{% if missing %}x{% else %}y{% endif %}{% if empty is defined and empty %}x{% endif %}{% if list and d and name %}all{% endif %}
{{- missing.attribute -}}
{{ nothing + 1 }}
{{ 'a' + 1 }}
{{ list.append(1) }}
{{ raise_exception('refused: ' ~ n) }}
{{ 1 / 0 }}
{{ [1, 'a'] | sort }}
{{ missing() }}
{{ n | nofilter }}
{{ n is notest }}
{% if %}
{% for x list %}{% endfor %}
{{ 'open }}
{% if yes %}
{{ (1, 2 }}
{{ 1 }
{% unknown %}
{% endfor %}
{{ n. }}
{{ @ }}
{% set true = 1 %}
"""


def rendered(env, template, variables):
    """The text, or null where jinja2 refuses."""
    try:
        return env.from_string(template).render(**variables)
    except (jinja2.exceptions.TemplateError, TypeError, ZeroDivisionError) as e:
        return {"refused": type(e).__name__, "message": str(e)}


def row(values, result):
    if isinstance(result, dict):
        return {**values, "text": None, "refused": result["refused"], **({"message": result["message"]} if result["refused"] == "TemplateError" else {})}
    return {**values, "text": result}


def write(folder):
    env = environment()
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    rows = []
    for name, template in T.items():
        cases = []
        for number, c in enumerate(CONVERSATIONS):
            context = {"add_generation_prompt": True, "tools": None, **c, **tokens}
            cases.append(row({"conversation": number}, rendered(env, template, context)))
        rows.append({"name": name, "template": template, "cases": cases})
    conversations = [{"add_generation_prompt": True, "tools": None, **c, **tokens} for c in CONVERSATIONS]
    line = lambda x: json.dumps(x, ensure_ascii=False)
    (folder / "templates.json").write_text(
        f'{{"jinja2": "{jinja2.__version__}", "now": {NOW},\n"conversations": [\n' + ",\n".join(map(line, conversations)) +
        '\n],\n"templates": [\n' + ",\n".join(map(line, rows)) + "\n]}\n", encoding="utf-8")
    language = [row({"template": t}, rendered(env, t, VARIABLES)) for t in LANGUAGE.strip("\n").split("\n")]
    lines = [  # what takes more than one line
        "  {% if yes %}\n  a\n  {% endif %}\nb\n", "x\n{% for i in list %}\n  {{ i }}\n{% endfor %}\ny\n\n", "{% if yes %}\n\n a{% endif %}\n\n b\n",
        "a {#- c -#}  b\n{# c #}\nd\n  {# c #}  e", "{{ n }}\n{{ n }}\n", "a\n  {%+ if yes %}b{% endif +%}\nc", "a\r\nb\rc\r\n{% if yes %}\r\nd{% endif %}",
        "{%- if yes -%}\n\n x \n{%- endif -%}\n", "\n\n{{- n -}}\n\n", "{% raw -%}\n {{ a }} \n{%- endraw %}\nb", "a\n\t {% set q = 1 %}  \nb", "<{{ n\n  + 1 }}>\n",
        "{{ 'multi\nline' }}", "{% set s %}\n a\n{% endset %}\n[{{ s }}]", "{% generation %}\n a {{ n }}\n{% endgeneration %}\nb",
    ]
    language += [row({"template": t}, rendered(env, t, VARIABLES)) for t in lines]
    (folder / "language.json").write_text(
        f'{{"jinja2": "{jinja2.__version__}", "now": {NOW},\n"variables": {line(VARIABLES)},\n"cases": [\n' + ",\n".join(map(line, language)) +
        "\n]}\n", encoding="utf-8")
    print(f"{len(T)} templates, {len(CONVERSATIONS)} conversations, {len(language)} of the language")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true")
    if not p.parse_args().check:
        write(HERE)
        return 0
    import tempfile
    with tempfile.TemporaryDirectory() as temporary:
        write(Path(temporary))
        wrong = [f.name for f in sorted(Path(temporary).iterdir()) if f.read_bytes() != (HERE / f.name).read_bytes()]
    print("\n".join(f"{w} differs" for w in wrong) or "the same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
