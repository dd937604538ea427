# C++ from .model files, as part of a build. Part of find_package(modelc) and of add_subdirectory alike.
#
#   modelc_add_library(NAME MODEL FILE.model CONFIG config.json
#                      [CHECKPOINT DIR] [BACKENDS cpu vulkan] [CLASS Llama] [NAMESPACE ns] [EXTENSIONS DIR…] [IMPORTS DIR…]
#                      [SET key=value…] [STATIC | SHARED | OBJECT] [C_API])
#     A library with the generated class, to be linked by the program that includes its header. With C_API also
#     NAME_model_type() of "FILE_c.h", and the C API of the runtime; a SHARED one has all of it inside.
#
#   modelc_add_executable(NAME MODEL FILE.model CONFIG config.json […])
#     A program: the runtime's stock main on the generated class.
#
#   modelc_target_model(TARGET MODEL FILE.model CONFIG config.json […])
#     A further model in a target that exists.
#
# The header is included as "FILE.h"; with NAMESPACE a::b as "a/b/FILE.h", so that one model can stand twice in a target.
# CONFIG may be left out where CHECKPOINT holds a config.json; CHECKPOINT also has every weight's name and shape checked
# when the sources are generated.
#
# What is generated again follows from what modelc read: the model, its imports, the standard library, the configuration
# and the checkpoint's headers stand in a depfile. The manifest is the output that a build goes by; the sources are
# byproducts that keep their time when they do not change, so nothing is compiled for nothing. A generation that fails takes
# the manifest away: what it made before is not taken for the model as it is.
#
# Cross compiling needs a modelc that runs on the build machine: -DMODELC_EXECUTABLE=/path/to/modelc, or one on the PATH.
include_guard(GLOBAL)

# The command line of modelc: the imported or built target, or the host's program when cross compiling.
function(_modelc_tool out)
  if(MODELC_EXECUTABLE)
    set(${out} "${MODELC_EXECUTABLE}" PARENT_SCOPE)
    return()
  endif()
  if(CMAKE_CROSSCOMPILING)
    # The PATH alone: prefixes hold programs of the target's machine.
    find_program(MODELC_EXECUTABLE modelc DOC "modelc for the machine that builds"
                 NO_CMAKE_FIND_ROOT_PATH NO_PACKAGE_ROOT_PATH NO_CMAKE_PATH NO_CMAKE_ENVIRONMENT_PATH NO_CMAKE_SYSTEM_PATH)
    if(MODELC_EXECUTABLE)
      set(${out} "${MODELC_EXECUTABLE}" PARENT_SCOPE)
      return()
    endif()
    message(FATAL_ERROR "cross compiling needs a modelc that runs here, and there is none on the PATH: "
                        "-DMODELC_EXECUTABLE=/path/to/modelc")
  endif()
  if(NOT TARGET modelc::modelc)
    message(FATAL_ERROR "there is no modelc to generate with: install it whole, or pass -DMODELC_EXECUTABLE=/path/to/modelc")
  endif()
  set(${out} modelc::modelc PARENT_SCOPE)
endfunction()

# Stops the configuration when a file that an argument names is not there and nothing makes it.
function(_modelc_existing what argument path)
  get_source_file_property(generated "${path}" GENERATED)
  if(NOT generated AND NOT EXISTS "${path}")
    message(FATAL_ERROR "${what}: ${argument} ${path} does not exist")
  endif()
endfunction()

# Adds the generated sources of one model to a target.
function(_modelc_generate function target with_main)
  cmake_parse_arguments(PARSE_ARGV 3 arg "C_API" "MODEL;CONFIG;CHECKPOINT;CLASS;NAMESPACE" "BACKENDS;EXTENSIONS;IMPORTS;SET")
  set(what "${function}(${target})")
  if(arg_UNPARSED_ARGUMENTS)
    list(JOIN arg_UNPARSED_ARGUMENTS " " text)
    message(FATAL_ERROR "${what}: unknown argument ${text}; expected MODEL, CONFIG, CHECKPOINT, BACKENDS, CLASS, NAMESPACE, "
                        "EXTENSIONS, IMPORTS, SET, C_API")
  endif()
  if(arg_KEYWORDS_MISSING_VALUES)
    list(JOIN arg_KEYWORDS_MISSING_VALUES ", " text)
    message(FATAL_ERROR "${what}: no value behind ${text}")
  endif()
  if(NOT arg_MODEL)
    message(FATAL_ERROR "${what}: MODEL is missing")
  endif()
  if(NOT arg_CONFIG AND NOT arg_CHECKPOINT)
    message(FATAL_ERROR "${what}: CONFIG is missing (a CHECKPOINT with a config.json serves as well)")
  endif()
  _modelc_tool(tool)

  get_filename_component(model "${arg_MODEL}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  get_filename_component(base "${model}" NAME_WLE)
  _modelc_existing("${what}" MODEL "${model}")
  set(root "${CMAKE_CURRENT_BINARY_DIR}/${target}.modelc")
  string(REPLACE "::" "/" below "${arg_NAMESPACE}")
  set(folder "${root}")
  if(below)
    set(folder "${root}/${below}")
  endif()

  set(command ${tool} build "${model}" -o "${folder}" --full-paths --depfile "${folder}/${base}.d")
  set(depends "${model}")
  if(arg_CONFIG)
    get_filename_component(config "${arg_CONFIG}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    _modelc_existing("${what}" CONFIG "${config}")
    list(APPEND command --config "${config}")
    list(APPEND depends "${config}")
  endif()
  if(arg_CHECKPOINT)
    get_filename_component(checkpoint "${arg_CHECKPOINT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    _modelc_existing("${what}" CHECKPOINT "${checkpoint}")
    list(APPEND command --checkpoint "${checkpoint}")
  endif()
  if(arg_BACKENDS)
    list(JOIN arg_BACKENDS "," backends)
    list(APPEND command --backend "${backends}")
  endif()
  if(arg_CLASS)
    list(APPEND command --name "${arg_CLASS}")
  endif()
  if(arg_NAMESPACE)
    list(APPEND command --namespace "${arg_NAMESPACE}")
  endif()
  foreach(extension IN LISTS arg_EXTENSIONS)
    get_filename_component(extension "${extension}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND command --allow-extension "${extension}")
  endforeach()
  foreach(import IN LISTS arg_IMPORTS)
    get_filename_component(import "${import}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND command -I "${import}")
  endforeach()
  foreach(setting IN LISTS arg_SET)
    list(APPEND command --set "${setting}")
  endforeach()

  set(headers "${folder}/${base}.h")
  if("vulkan" IN_LIST arg_BACKENDS)
    list(APPEND headers "${folder}/${base}_shaders.h")
  endif()
  set(sources "${folder}/${base}.cpp")
  if(with_main)
    list(APPEND command --main)
    list(APPEND sources "${folder}/${base}_main.cpp")
  endif()
  if(arg_C_API)
    list(APPEND command --c-api)
    list(APPEND sources "${folder}/${base}_c.cpp")
    list(APPEND headers "${folder}/${base}_c.h")
    get_target_property(kind ${target} TYPE)
    if(kind STREQUAL SHARED_LIBRARY)
      target_link_libraries(${target} PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,modelc::c>")
    else()
      target_link_libraries(${target} PUBLIC modelc::c)
    endif()
  endif()
  set(manifest "${folder}/${base}.manifest.json")
  get_property(known TARGET ${target} PROPERTY MODELC_MANIFESTS)
  if(manifest IN_LIST known)
    message(FATAL_ERROR "${what}: ${base}.model stands in this target already; give one of them a NAMESPACE")
  endif()
  set_property(TARGET ${target} APPEND PROPERTY MODELC_MANIFESTS "${manifest}")
  add_custom_command(
    OUTPUT "${manifest}"
    BYPRODUCTS ${sources} ${headers}
    COMMAND ${command}
    DEPENDS ${depends} ${tool}
    DEPFILE "${folder}/${base}.d"
    COMMENT "modelc ${base}.model for ${target}"
    VERBATIM)
  set_source_files_properties(${sources} PROPERTIES GENERATED TRUE)
  # An expression of the model is computed operation by operation, whatever the processor offers.
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)
  target_sources(${target} PRIVATE "${manifest}" ${sources} ${headers})
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${root}>")
endfunction()

function(modelc_target_model target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "modelc_target_model(${target}): there is no such target")
  endif()
  _modelc_generate(modelc_target_model ${target} FALSE ${ARGN})
  target_link_libraries(${target} PUBLIC modelc::runtime)
endfunction()

function(modelc_add_library name)
  set(arguments ${ARGN})
  set(kind STATIC)
  foreach(k IN ITEMS STATIC OBJECT SHARED)
    if("${k}" IN_LIST arguments)
      list(REMOVE_ITEM arguments ${k})
      set(kind ${k})
    endif()
  endforeach()
  add_library(${name} ${kind})
  target_compile_features(${name} PUBLIC cxx_std_20)
  _modelc_generate(modelc_add_library ${name} FALSE ${arguments})
  target_link_libraries(${name} PUBLIC modelc::runtime)
endfunction()

function(modelc_add_executable name)
  add_executable(${name})
  target_compile_features(${name} PRIVATE cxx_std_20)
  _modelc_generate(modelc_add_executable ${name} TRUE ${ARGN})
  target_link_libraries(${name} PRIVATE modelc::main)
endfunction()
