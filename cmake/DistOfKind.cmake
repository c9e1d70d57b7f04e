# Run by cpack for each kind of package: only the archive has libraries of its own.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL programs)
else()
  set(CPACK_COMPONENTS_ALL programs libraries)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
