// Habits of Python and PyTorch: what a name, a method, an argument or a type of theirs is written as here. Each answer is
// the way out of a message, empty where nothing is known of the word. Asked only once a word has turned out to be unknown,
// so that a model file may use any of them as a name of its own.
#pragma once

#include <string>
#include <string_view>

namespace modelc::sema {

// An unknown name: "None", "enumerate", "cat".
std::string habit_of_name(std::string_view name);

// A field or method asked of a tensor, which is written `object` (short texts alone are repeated): "view", "half", "T".
std::string habit_of_method(std::string_view name, std::string_view object);

// An argument that the callee does not have: `dim` and `keepdim` of an operation, `bias` of none.
std::string habit_of_argument(std::string_view name);

// The element type of this language that a type of PyTorch, of C or of NumPy is: "float16" → "f16"; empty for all others.
std::string_view element_of_habit(std::string_view word);

// A type where a value's type is asked: "str", "List", "Optional".
std::string habit_of_type(std::string_view word);

// What stands where a checkpoint's format is asked.
std::string habit_of_format(std::string_view word);

}  // namespace modelc::sema
