# Every third-party library, found as Debian 12 packages it. All of them are private to libqkv.
find_package(hwy REQUIRED)
find_package(TBB REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)

# oneDNN's own config file demands OpenCL headers; Random123 has none.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
add_library(qkv_dnnl INTERFACE)
target_include_directories(qkv_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(qkv_dnnl INTERFACE ${DNNL_LIBRARY} OpenMP::OpenMP_CXX)

set(QKV_PRIVATE_LIBRARIES
  $<BUILD_INTERFACE:hwy::hwy> $<BUILD_INTERFACE:TBB::tbb> $<BUILD_INTERFACE:fmt::fmt>
  $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:ZLIB::ZLIB> $<BUILD_INTERFACE:qkv_dnnl> ${CMAKE_DL_LIBS})
