# cmake --install: public headers, library, program and find_package(qkv), which needs none of our dependencies.
include(CMakePackageConfigHelpers)
install(TARGETS qkv EXPORT qkv-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS qkv-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS qkv-http LIBRARY DESTINATION ${QKV_PLUGIN_FOLDER})
if(TARGET qkv-mpi)
  install(TARGETS qkv-mpi LIBRARY DESTINATION ${QKV_PLUGIN_FOLDER})
endif()
# The public headers are those that contain QKV_API (core/api.h). They are looked up at install time, so that editing a
# header never means configuring again.
install(CODE "
  file(GLOB_RECURSE headers RELATIVE \"${PROJECT_SOURCE_DIR}/src\" \"${PROJECT_SOURCE_DIR}/src/qkv/*.h\")
  foreach(header IN LISTS headers)
    file(STRINGS \"${PROJECT_SOURCE_DIR}/src/\${header}\" exported REGEX QKV_API LIMIT_COUNT 1)
    if(exported)
      get_filename_component(folder \${header} DIRECTORY)
      file(INSTALL \"${PROJECT_SOURCE_DIR}/src/\${header}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/\${folder}\")
    endif()
  endforeach()")
install(EXPORT qkv-targets NAMESPACE qkv:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
file(WRITE ${PROJECT_BINARY_DIR}/qkv-config.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/qkv-targets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qkv-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qkv-config.cmake ${PROJECT_BINARY_DIR}/qkv-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
