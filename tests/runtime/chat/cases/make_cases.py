#!/usr/bin/env python3
"""Chat templates in the forms that models publish, written from the descriptions of their formats, and what jinja2 makes of
conversations with them; then small templates, one for each thing of the language.

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
T["chatml"] = """{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\\n' }}
{% endif %}"""
T["smollm2"] = """{%- for message in messages %}
{%- if loop.first and messages[0]['role'] != 'system' %}
{{- '<|im_start|>system\\nYou are a small assistant.<|im_end|>\\n' }}
{%- endif %}
{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
T["llama2"] = """{% if messages[0]['role'] == 'system' %}
{% set loop_messages = messages[1:] %}
{% set system_message = messages[0]['content'] %}
{% else %}
{% set loop_messages = messages %}
{% set system_message = false %}
{% endif %}
{% for message in loop_messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}
{% endif %}
{% if loop.index0 == 0 and system_message != false %}
{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}
{% else %}
{% set content = message['content'] %}
{% endif %}
{% if message['role'] == 'user' %}
{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
{% elif message['role'] == 'assistant' %}
{{ ' ' + content.strip() + ' ' + eos_token }}
{% endif %}
{% endfor %}"""
T["llama3"] = """{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""
T["llama3_1"] = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{#- The system message is taken out, so that it can be put first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- "You have these functions:\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("Cannot put tools in the first user message when there's no first user message!") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}
    {{- "Given these functions, answer with a call in JSON.\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
T["mistral"] = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("conversation roles must alternate user/assistant") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported!") }}
    {%- endif %}
{%- endfor %}
"""
T["gemma"] = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"""
T["gemma3"] = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\\n' }}
{%- endif -%}
"""
T["phi3"] = """{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""
T["phi4"] = """{% for message in messages %}{% if (message['role'] == 'system') %}{{'<|im_start|>system<|im_sep|>' + message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'assistant') %}{{'<|im_start|>assistant<|im_sep|>'}}{% generation %}{{message['content'] + '<|im_end|>'}}{% endgeneration %}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}"""
T["qwen2_5"] = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are a helpful assistant.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n\\nYou may call functions. Their signatures are within <tools></tools>:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nAnswer with {\\"name\\": <function-name>, \\"arguments\\": <args-json-object>} within <tool_call></tool_call>.<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
T["qwen3"] = """{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- set tool_call = tool_call.function if tool_call.function else tool_call %}
                {{- '<tool_call>\\n{"name": "' ~ tool_call.name ~ '", "arguments": ' }}
                {{- tool_call.arguments if tool_call.arguments is string else tool_call.arguments | tojson }}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + content + '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""
T["deepseek"] = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, system_prompt='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{% set ns.system_prompt = message['content'] %}{%- endif %}{%- endfor %}{{bos_token}}{{ns.system_prompt}}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and message['content'] is not none %}{%- if ns.is_tool %}{{'<｜tool▁outputs▁end｜>' + message['content'] + '<｜end▁of▁sentence｜>'}}{%- set ns.is_tool = false -%}{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}{%- endif %}{%- endif %}{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{{'<｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>'}}{%- endif %}{%- endfor -%}{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜>'}}{% endif %}"""
T["zephyr"] = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""
T["vicuna"] = """{% if messages[0]['role'] == 'system' %}{% set system_message = messages[0]['content'] %}{% set loop_messages = messages[1:] %}{% else %}{% set system_message = 'A chat between a curious user and a helpful assistant.' %}{% set loop_messages = messages %}{% endif %}{{ system_message }}
{%+ for message in loop_messages %}{% if message['role'] == 'user' %}{{ ' USER: ' + message['content'].strip() }}{% elif message['role'] == 'assistant' %}{{ ' ASSISTANT: ' + message['content'].strip() + eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ ' ASSISTANT:' }}{% endif %}"""
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
T["command_r"] = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% elif false == true %}{% set loop_messages = messages %}{% set system_message = 'unused' %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% if system_message != false %}{{ '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' + system_message + '<|END_OF_TURN_TOKEN|>' }}{% endif %}{% for message in loop_messages %}{% set content = message['content'] %}{% if message['role'] == 'user' %}{{ '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + content.strip() + '<|END_OF_TURN_TOKEN|>' }}{% elif message['role'] == 'assistant' %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>'  + content.strip() + '<|END_OF_TURN_TOKEN|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}"""
T["command_r_tools"] = """{%- macro json_to_python_type(json_spec) %}
{%- set basic_type_map = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"} %}
{%- if basic_type_map[json_spec.type] is defined %}
    {{- basic_type_map[json_spec.type] }}
{%- elif json_spec.type == "array" %}
    {{- "List[" + json_to_python_type(json_spec['items']) + "]" }}
{%- elif json_spec.type is iterable and json_spec.type is not string %}
    {{- "Union[" }}
    {%- for t in json_spec.type %}
      {{- json_to_python_type({"type": t}) }}
      {%- if not loop.last %}
        {{- "," }}
      {%- endif %}
    {%- endfor %}
    {{- "]" }}
{%- else %}
    {{- "Any" }}
{%- endif %}
{%- endmacro %}
{%- macro describe(tools) %}
{%- for tool in tools %}
    {%- if loop.index0 != 0 %}
        {{- '\\n\\n' }}
    {%- endif %}
{{- '```python\\ndef ' + tool.function.name + '(' }}
    {%- for name, fields in tool.function.parameters.properties|items %}
        {%- if loop.index0 != 0 %}
            {{- ', ' }}
        {%- endif %}
{{- name + ": " }}
        {%- if not (name in tool.function.parameters.required) %}
{{- 'Optional[' + json_to_python_type(fields) + '] = None' }}
        {%- else %}
{{- json_to_python_type(fields) }}
        {%- endif %}
    {%- endfor %}
{{- ') -> List[Dict]:\\n    \\"\\"\\"' ~ tool.function.description | replace('\\n', ' ') | indent(4) ~ '\\"\\"\\"\\n    pass\\n```' }}
{%- endfor %}
{%- endmacro %}
{{- bos_token }}{{ '# Tools\\n' + describe(tools or []) if tools else '' }}
{%- for message in messages %}
    {%- set tag = {'user': 'USER', 'assistant': 'CHATBOT', 'system': 'SYSTEM', 'tool': 'SYSTEM'}[message.role] %}
    {{- '<|' ~ tag ~ '|>' ~ (message.content or '') ~ (message.tool_calls | map(attribute='function') | map(attribute='name') | join(', ') if message.tool_calls else '') }}
{%- endfor %}"""
T["granite"] = """{%- set tools_system_message_prefix = 'You are a helpful assistant with access to tools.' %}
{%- set today = strftime_now('%B %d, %Y') %}
{%- if messages[0]['role'] == 'system' %}
  {%- set system_message = messages[0]['content'] %}
  {%- set loop_messages = messages[1:] %}
{%- else %}
  {%- set system_message = "Knowledge Cutoff Date: April 2024.\\nToday's Date: " ~ today ~ "." %}
  {%- if tools %}
    {%- set system_message = system_message + '\\n' + tools_system_message_prefix %}
  {%- endif %}
  {%- set loop_messages = messages %}
{%- endif %}
{{- '<|start_of_role|>system<|end_of_role|>' + system_message + '<|end_of_text|>\\n' }}
{%- if tools %}
  {{- '<|start_of_role|>tools<|end_of_role|>' }}
  {{- tools | tojson(indent=2) }}
  {{- '<|end_of_text|>\\n' }}
{%- endif %}
{%- for message in loop_messages %}
  {{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + (message['content'] if message['content'] else message['tool_calls'] | tojson) + '<|end_of_text|>\\n' }}
  {%- if loop.last and add_generation_prompt %}
    {{- '<|start_of_role|>assistant' }}
      {%- if controls %}
        {{- ' ' + controls | tojson()}}
      {%- endif %}
    {{- '<|end_of_role|>' }}
  {%- endif %}
{%- endfor %}"""
T["falcon"] = """{% for message in messages %}{% if not loop.first %}{{ '\\n' }}{% endif %}{% if message['role'] == 'system' %}{{ 'System: ' ~ message['content'].strip() }}{% elif message['role'] == 'user' %}{{ 'User: ' ~ message['content'].strip().replace('\\r\\n', '\\n').replace('\\n\\n', '\\n') }}{% elif message['role'] == 'assistant' %}{{ 'Falcon: ' ~ message['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '\\n' + 'Falcon:' }}{% endif %}"""
T["olmo"] = """{{ eos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|system|>\\n' + message['content'] + '\\n' }}{% elif message['role'] == 'user' %}{{ '<|user|>\\n' + message['content'] + '\\n' }}{% elif message['role'] == 'assistant' %}{% if not loop.last %}{{ '<|assistant|>\\n'  + message['content'] + eos_token + '\\n' }}{% else %}{{ '<|assistant|>\\n'  + message['content'] + eos_token }}{% endif %}{% endif %}{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}{% endfor %}"""
T["yi"] = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% if messages[0]['role'] == 'system' %}{% set system_message = messages[0]['content'] %}{% endif %}{% if system_message is defined %}{{ system_message }}{% endif %}{% for message in messages %}{% set content = message['content'] %}{% if message['role'] == 'user' %}{{ '<|im_start|>user\\n' + content + '<|im_end|>\\n<|im_start|>assistant\\n' }}{% elif message['role'] == 'assistant' %}{{ content + '<|im_end|>' + '\\n' }}{% endif %}{% endfor %}"""

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
