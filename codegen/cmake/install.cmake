# What an installed modelc needs beside itself: the standard library, the runtime's headers and libraries, and what
# find_package and pkg-config read. All of it may be moved as a whole.
include(CMakePackageConfigHelpers)
set(MODELC_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/modelc)

if(TARGET modelc)
  install(TARGETS modelc EXPORT modelcTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # What the shaders of expressions include.
  install(DIRECTORY shaders/include DESTINATION ${CMAKE_INSTALL_DATADIR}/modelc/shaders)
  install(DIRECTORY stdlib/ DESTINATION ${CMAKE_INSTALL_DATADIR}/modelc/stdlib FILES_MATCHING PATTERN "*.model")
endif()
# Something to begin with: the model files, programs around one of them, and the small checkpoint that they run.
set(MODELC_EXAMPLES_DIR ${CMAKE_INSTALL_DATADIR}/modelc/examples)
install(DIRECTORY examples/ DESTINATION ${MODELC_EXAMPLES_DIR} FILES_MATCHING PATTERN "*.model" PATTERN "*.comp"
        PATTERN "main.cpp"
        PATTERN fixtures EXCLUDE PATTERN tiny EXCLUDE PATTERN embed EXCLUDE)
install(DIRECTORY examples/embed DESTINATION ${MODELC_EXAMPLES_DIR} PATTERN __pycache__ EXCLUDE)
install(FILES examples/tiny/config.json examples/tiny/generation_config.json examples/tiny/model.safetensors
              examples/tiny/tokenizer.json examples/tiny/tokenizer_config.json
        DESTINATION ${MODELC_EXAMPLES_DIR}/tiny)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/modelc)

if(TARGET modelc_runtime)
  install(TARGETS modelc_runtime modelc_c modelc_main EXPORT modelcTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY runtime/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/modelc/runtime FILES_MATCHING PATTERN "*.h")

  install(EXPORT modelcTargets NAMESPACE modelc:: DESTINATION ${MODELC_CMAKE_DIR})
  configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/modelcConfig.cmake.in
                                ${PROJECT_BINARY_DIR}/generated/cmake/modelcConfig.cmake
                                INSTALL_DESTINATION ${MODELC_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
  # Before 1.0 a minor version may change the generated code's interface.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/cmake/modelcConfigVersion.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/generated/cmake/modelcConfig.cmake
                ${PROJECT_BINARY_DIR}/generated/cmake/modelcConfigVersion.cmake
                ${CMAKE_CURRENT_LIST_DIR}/modelcFunctions.cmake
          DESTINATION ${MODELC_CMAKE_DIR})

  # From the .pc file's folder to the prefix, so that a moved tree still works.
  file(RELATIVE_PATH MODELC_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/modelc-runtime.pc.in
                 ${PROJECT_BINARY_DIR}/generated/cmake/modelc-runtime.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/generated/cmake/modelc-runtime.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# cpack -G DEB: a package that pulls what it needs.
if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_PACKAGE_NAME modelc)
  set(CPACK_PACKAGE_CONTACT "the modelc developers")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
      "Checks .model files and writes C++ for them; the runtime loads checkpoints into the generated classes.")
  set(CPACK_DEBIAN_PACKAGE_SECTION devel)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  # To compile and link what it writes.
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libpcre2-dev, libutf8proc-dev, libsimdjson-dev, g++ | c++-compiler")
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "cmake (>= 3.25), pkg-config")
  # Loaded while a program runs, where it is there: the CPU needs no driver.
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libvulkan1, mesa-vulkan-drivers, ninja-build")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_GENERATOR DEB)
  include(CPack)
endif()
