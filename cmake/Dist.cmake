# `make dist`: a Debian package, and an archive that runs where it is unpacked, with the libraries of
# Debian 12 beside the programs. Both hold fettle, kubectl-fettle, fettle-trainer, the man page,
# completion for shells, and notices.

set(FETTLE_PAGES ${CMAKE_BINARY_DIR}/pages)
set(pages "")
foreach(page "man;fettle.1" "bash;fettle.bash" "zsh;_fettle" "fish;fettle.fish")
  list(GET page 0 kind)
  list(GET page 1 file)
  set(arguments completion ${kind})
  if(kind STREQUAL "man")
    set(arguments pages man)
  endif()
  add_custom_command(OUTPUT ${FETTLE_PAGES}/${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${FETTLE_PAGES}
    COMMAND $<TARGET_FILE:fettle> ${arguments} > ${FETTLE_PAGES}/${file}
    DEPENDS fettle VERBATIM)
  list(APPEND pages ${FETTLE_PAGES}/${file})
endforeach()
add_custom_target(fettle_dist DEPENDS fettle fettle-trainer ${pages})

# The libraries of the archive find each other by the path of the program (DT_RPATH), which newer
# tags (DT_RUNPATH) would not allow.
foreach(program fettle fettle-trainer)
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "\$ORIGIN/../lib/fettle")
  target_link_options(${program} PRIVATE LINKER:--disable-new-dtags)
endforeach()

install(TARGETS fettle fettle-trainer RUNTIME_DEPENDENCY_SET fettle_libraries
        RUNTIME DESTINATION bin COMPONENT programs)
install(CODE "file(CREATE_LINK fettle \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/kubectl-fettle\" SYMBOLIC)"
        COMPONENT programs)
install(FILES ${FETTLE_PAGES}/fettle.1 DESTINATION share/man/man1 COMPONENT programs)
install(FILES ${FETTLE_PAGES}/fettle.bash DESTINATION share/bash-completion/completions RENAME fettle
        COMPONENT programs)
install(FILES ${FETTLE_PAGES}/_fettle DESTINATION share/zsh/vendor-completions COMPONENT programs)
install(FILES ${FETTLE_PAGES}/fettle.fish DESTINATION share/fish/vendor_completions.d
        COMPONENT programs)
# Beside the programs, which find it there (cli/exchange/python_module.cpp).
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/fettle DESTINATION share/fettle/python
        COMPONENT programs PATTERN "__pycache__" EXCLUDE)
install(FILES LICENSE THIRD_PARTY_NOTICES.md DESTINATION share/doc/fettle COMPONENT programs)
# All but the C library and what belongs to it, which must be that of the machine.
install(RUNTIME_DEPENDENCY_SET fettle_libraries
        PRE_EXCLUDE_REGEXES "^ld-linux" "^libc\\.so" "^libm\\.so" "^libpthread\\.so" "^libdl\\.so"
                            "^librt\\.so" "^libresolv\\.so"
        LIBRARY DESTINATION lib/fettle COMPONENT libraries)

set(CPACK_PACKAGE_NAME fettle)
set(CPACK_PACKAGE_CONTACT "The Fettle authors <fettle@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Tunes hyperparameters here or on Kubernetes")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/dist)
set(CPACK_PACKAGE_FILE_NAME fettle-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/DistOfKind.cmake)
include(CPack)
