# The page of `fettle report`: what it is made of becomes part of the program.
find_file(FETTLE_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js
          DOC "Chart.js, minified (Debian: libjs-chart.js)")
if(NOT FETTLE_CHART_JS)
  message(FATAL_ERROR "chart.min.js was not found; it is in the Debian package libjs-chart.js, or "
                      "set FETTLE_CHART_JS to where it is")
endif()

set(FETTLE_PAGE ${CMAKE_CURRENT_LIST_DIR})
set(FETTLE_PAGE_PARTS
  ${FETTLE_PAGE}/page.html ${FETTLE_PAGE}/style.css ${FETTLE_CHART_JS} ${FETTLE_PAGE}/document.js
  ${FETTLE_PAGE}/study.js ${FETTLE_PAGE}/views.js ${FETTLE_PAGE}/charts.js ${FETTLE_PAGE}/dots.js
  ${FETTLE_PAGE}/selection.js ${FETTLE_PAGE}/results.js ${FETTLE_PAGE}/curves.js
  ${FETTLE_PAGE}/parameters.js ${FETTLE_PAGE}/together.js ${FETTLE_PAGE}/parallel.js ${FETTLE_PAGE}/timeline.js
  ${FETTLE_PAGE}/failures.js ${FETTLE_PAGE}/table.js ${FETTLE_PAGE}/rows.js ${FETTLE_PAGE}/detail.js ${FETTLE_PAGE}/downloads.js
  ${FETTLE_PAGE}/page.js)
fettle_embed(page_parts ${FETTLE_PAGE_PARTS})
target_sources(fettle_cli PRIVATE ${FETTLE_PAGE}/page.cpp
               ${FETTLE_PAGE}/study_data.cpp ${FETTLE_PAGE}/insight.cpp ${FETTLE_PAGE}/trial_notes.cpp)
