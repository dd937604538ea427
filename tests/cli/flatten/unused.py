"""Prints each declaration of a model file that neither a model nor a test of the file leads to. Argument: FILE.model."""
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
text = re.sub(r'"(\\.|[^"\\])*"|//[^\n]*', " ", text)        # names in strings and comments are no uses
parts = re.split(r"^(?=(?:axis|config|variant|interface|module|model|fn|op|encoding|test)\b)", text, flags=re.M)[1:]
bodies = {}
open_names = []
for number, part in enumerate(parts):
    kind, name = re.match(r"(\w+)\s*(\w*)", part).groups()
    if kind == "test":
        name = "test %d" % number
    bodies[name] = set(re.findall(r"\w+", part))
    if kind in ("model", "test"):
        open_names.append(name)
reached = set(open_names)
while open_names:
    for name in bodies[open_names.pop()]:
        if name in bodies and name not in reached:
            reached.add(name)
            open_names.append(name)
for name in bodies:
    if name not in reached:
        print(name, "is used by nothing")
