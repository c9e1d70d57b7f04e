# `fettle suggest`: a library of its own, so that its tests need nothing of the other commands.
fettle_library(fettle_suggest SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/suggest.cpp
  ${CMAKE_CURRENT_LIST_DIR}/suggest_study.cpp
  USES fettle_search fettle_api fettle_base)
fettle_test(cli_suggest_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/suggest_test.cpp USES fettle_suggest)
fettle_test(cli_suggest_bad_input_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/suggest_bad_input_test.cpp
            USES fettle_suggest fettle_search_testing)
