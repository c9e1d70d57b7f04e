# What every target of the project shares: fettle_library, fettle_program and fettle_test.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# OFF where a compiler is met that warns of more than ours do.
option(FETTLE_WERROR "Warnings are errors" ON)

# -ffp-contract=off and no -march: the compiler gives the same arithmetic on every x86-64 machine.
# The C library does not: it chooses exp, log and pow by the processor. So the same history gives the
# same decisions on one machine, and elsewhere but for last digits (docs/decisions/0038).
add_compile_options(
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;$<$<BOOL:${FETTLE_WERROR}>:-Werror>;-Wshadow;-Wnon-virtual-dtor;-ffp-contract=off>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra;$<$<BOOL:${FETTLE_WERROR}>:-Werror=all-warnings>;--expt-relaxed-constexpr>")
if(FETTLE_SANITIZE)
  # GCC 12 sees std::variant members as uninitialised when it instruments them. The three checks
  # left out sit at every access, double the compiler's time, and find little that the address
  # sanitizer does not: `-DFETTLE_SANITIZE_ACCESSES=ON` (make test-all) has them.
  add_compile_options(-fsanitize=${FETTLE_SANITIZE} -fno-omit-frame-pointer -g1
                      -Wno-maybe-uninitialized)
  # In kernels, alignment is checked all the same (kernels/CMakeLists.txt): a GPU faults where x86
  # does not.
  if(NOT FETTLE_SANITIZE_ACCESSES)
    add_compile_options(-fno-sanitize=null,alignment,vptr)
  endif()
  add_link_options(-fsanitize=${FETTLE_SANITIZE})
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

enable_testing()
include(cmake/SanitizedSample.cmake)
# All programs and tests but that sample: what `make test` builds and runs in Release.
add_custom_target(fettle_unsanitized)

# fettle_library(name SOURCES ... [USES target...])
function(fettle_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_USES})
endfunction()

# fettle_program(name SOURCES ... [USES target...])
function(fettle_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_USES})
  add_dependencies(fettle_unsanitized ${name})
endfunction()

# The target fettle_tests_<folder> has the tests of one top-level folder, ctest's label is the folder:
# `make unit FOLDER=core`.
function(fettle_label_test name test)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" folder ${folder})
  if(NOT TARGET fettle_tests_${folder})
    add_custom_target(fettle_tests_${folder})
  endif()
  add_dependencies(fettle_tests_${folder} ${name})
  if(name IN_LIST FETTLE_SANITIZED_SAMPLE)
    set(sample fettle_sanitized_sample)
  else()
    set(sample fettle_unsanitized)
  endif()
  add_dependencies(${sample} ${name})
  set_tests_properties(${test} PROPERTIES LABELS "${folder};${sample}")
endfunction()

# What all tests are compiled with. Half of a test's compilation is reading GoogleTest and optimising
# what its macros expand to: its headers are read once, and -O1 is enough (docs/decisions/0027).
function(fettle_test_compilation name)
  target_link_libraries(${name} PRIVATE GTest::gmock)
  target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>
                         $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # for ccache
  if(name STREQUAL fettle_test_headers)
    target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  else()
    target_precompile_headers(${name} REUSE_FROM fettle_test_headers)
  endif()
endfunction()

# fettle_test(name SOURCES ... [USES target...] [SHARDS n]): a GoogleTest program, one ctest entry, or
# n entries that each run a part of it, so that a long one does not keep all cores but one waiting.
# Tests that read data or run programs find them by base/test_paths.h.
function(fettle_test name)
  if(NOT FETTLE_TESTS)
    return()
  endif()
  if(NOT FETTLE_GOOGLETEST)
    find_package(GTest REQUIRED)
  endif()
  if(NOT TARGET fettle_test_headers)
    file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cpp "")
    add_library(fettle_test_headers OBJECT ${CMAKE_BINARY_DIR}/test_headers.cpp)
    fettle_test_compilation(fettle_test_headers)
  endif()
  cmake_parse_arguments(ARG "" "SHARDS" "SOURCES;USES" ${ARGN})
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_USES} fettle_test_paths GTest::gtest_main)
  fettle_test_compilation(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(limit 1200)  # ends what hangs; the longest takes about a minute on two quiet cores
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(test ${name})
    if(ARG_SHARDS GREATER 1)
      string(APPEND test _${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${limit}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    fettle_label_test(${name} ${test})
  endforeach()
endfunction()
