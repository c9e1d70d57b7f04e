# `fettle suggest`: a library of its own, so that its tests need nothing of the other commands.
fettle_library(fettle_suggest SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/suggest.cpp
  ${CMAKE_CURRENT_LIST_DIR}/suggest_line.cpp
  ${CMAKE_CURRENT_LIST_DIR}/suggest_points.cpp
  ${CMAKE_CURRENT_LIST_DIR}/suggest_result.cpp
  ${CMAKE_CURRENT_LIST_DIR}/suggest_search.cpp
  ${CMAKE_CURRENT_LIST_DIR}/suggest_session.cpp
  ${CMAKE_CURRENT_LIST_DIR}/suggest_store.cpp
  ${CMAKE_CURRENT_LIST_DIR}/suggest_stored.cpp
  ${CMAKE_CURRENT_LIST_DIR}/suggest_study.cpp
  ${CMAKE_CURRENT_LIST_DIR}/suggest_trials.cpp
  USES fettle_runtime_local fettle_control fettle_core fettle_search fettle_api fettle_base)
target_compile_definitions(fettle_suggest PRIVATE FETTLE_VERSION="${PROJECT_VERSION}")
fettle_test(cli_suggest_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/suggest_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/suggest_protocol_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/suggest_store_test.cpp
  USES fettle_suggest)
fettle_test(cli_suggest_bad_input_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/suggest_bad_input_test.cpp
            USES fettle_suggest fettle_search_testing)

# The client in another language, over a real pipe; it must come close to the minimum, 0.
if(FETTLE_TESTS)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME examples_suggest_client COMMAND ${Python3_EXECUTABLE}
           ${PROJECT_SOURCE_DIR}/examples/suggest_client.py $<TARGET_FILE:fettle>)
  set_tests_properties(examples_suggest_client PROPERTIES TIMEOUT 60
    PASS_REGULAR_EXPRESSION "^100 {.*'step': 27, 'value': [0-9.]+e-")
  add_test(NAME cli_suggest_kill_test COMMAND ${Python3_EXECUTABLE}
           ${CMAKE_CURRENT_LIST_DIR}/suggest_kill_test.py $<TARGET_FILE:fettle>)
  add_test(NAME docs_suggest COMMAND ${Python3_EXECUTABLE}
           ${PROJECT_SOURCE_DIR}/tests/documented_suggest.py $<TARGET_FILE:fettle>)
  set_tests_properties(cli_suggest_kill_test docs_suggest PROPERTIES TIMEOUT 300)
endif()
