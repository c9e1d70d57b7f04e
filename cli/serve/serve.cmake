# `fettle serve`: what its pages load becomes part of the program, beside the parts of the report.
set(FETTLE_SERVE ${CMAKE_CURRENT_LIST_DIR})
if(FETTLE_KUBE)
  fettle_embed(live_parts
    ${FETTLE_SERVE}/pages/index.html ${FETTLE_SERVE}/pages/compare.html ${FETTLE_SERVE}/pages/live.css
    ${FETTLE_SERVE}/pages/stream.js ${FETTLE_SERVE}/pages/follow.js ${FETTLE_SERVE}/pages/panel.js
    ${FETTLE_SERVE}/pages/shared.js ${FETTLE_SERVE}/pages/list.js ${FETTLE_SERVE}/pages/compare.js)
  target_sources(fettle_cli PRIVATE
    ${FETTLE_SERVE}/access.cpp ${FETTLE_SERVE}/answers.cpp ${FETTLE_SERVE}/feeds/audience.cpp
    ${FETTLE_SERVE}/feeds/estimates.cpp ${FETTLE_SERVE}/feeds/events.cpp ${FETTLE_SERVE}/feeds/feed.cpp
    ${FETTLE_SERVE}/feeds/followed.cpp ${FETTLE_SERVE}/feeds/feed_thread.cpp ${FETTLE_SERVE}/jobs.cpp
    ${FETTLE_SERVE}/feeds/list_feed.cpp ${FETTLE_SERVE}/log_followers.cpp ${FETTLE_SERVE}/log_tail.cpp
    ${FETTLE_SERVE}/routes.cpp ${FETTLE_SERVE}/serve.cpp ${FETTLE_SERVE}/service.cpp
    ${FETTLE_SERVE}/shells.cpp ${FETTLE_SERVE}/feeds/study_feed.cpp ${FETTLE_SERVE}/feeds/study_list.cpp)
  target_link_libraries(fettle_cli PUBLIC fettle_http)
else()
  target_sources(fettle_cli PRIVATE ${FETTLE_SERVE}/no_serve.cpp)
endif()
