# Every third-party library, found as Debian 12 packages it. All of them are private to libqkv.
find_package(hwy REQUIRED)
find_package(TBB REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/qkv/data/subwords.cpp PROPERTIES  # its headers do not tell its version
  COMPILE_DEFINITIONS QKV_SENTENCEPIECE_VERSION="${sentencepiece_VERSION}")
pkg_check_modules(microhttpd REQUIRED IMPORTED_TARGET libmicrohttpd)  # of the plug-in of `qkv serve` alone
# Only the plug-in for distributed jobs needs it, and is not built without it.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)  # its .pc file gives a wrong version: require none

# The oracle for random numbers in the tests; it has no config file.
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h)

set(QKV_PRIVATE_LIBRARIES
  $<BUILD_INTERFACE:hwy::hwy> $<BUILD_INTERFACE:TBB::tbb> $<BUILD_INTERFACE:fmt::fmt>
  $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:ZLIB::ZLIB> $<BUILD_INTERFACE:yaml-cpp>
  $<BUILD_INTERFACE:PkgConfig::sentencepiece> $<BUILD_INTERFACE:PkgConfig::utf8proc> ${CMAKE_DL_LIBS})
