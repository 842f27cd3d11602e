# cmake --install: headers, library, program and find_package(qkv), which needs none of our dependencies.
include(CMakePackageConfigHelpers)
install(TARGETS qkv EXPORT qkv-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS qkv-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/qkv DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE PATTERN "cli" EXCLUDE)
install(EXPORT qkv-targets NAMESPACE qkv:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
file(WRITE ${PROJECT_BINARY_DIR}/qkv-config.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/qkv-targets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qkv-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qkv-config.cmake ${PROJECT_BINARY_DIR}/qkv-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
