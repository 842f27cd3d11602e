# Unit tests of the page's build, one program for Node. Google Test is built from Debian's sources.
set(QKV_GTEST /usr/src/googletest/googletest)
add_library(wasm_gtest STATIC ${QKV_GTEST}/src/gtest-all.cc ${QKV_GTEST}/src/gtest_main.cc)
target_include_directories(wasm_gtest SYSTEM PUBLIC ${QKV_GTEST}/include PRIVATE ${QKV_GTEST})
target_compile_options(wasm_gtest PRIVATE -O1 -w)

file(GLOB QKV_WASM_TESTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/wasm/*.cpp ${PROJECT_SOURCE_DIR}/tests/unit/ops/*.cpp)
foreach(name attention/cases attention/laws_test attention/golden_test attention/mask_test attention/attend_test
    attention/relative_positions_test core/numbers_test core/names_test kernels/gemm_test
    models/transformer_golden_test models/language_golden_test models/vision_transformer_golden_test
    regression/attention_test regression/kernel_regression_test tensor/tape_test tensor/tensor_test train/golden_test
    serve/training_desk_test)
  list(APPEND QKV_WASM_TESTS ${PROJECT_SOURCE_DIR}/tests/unit/${name}.cpp)
endforeach()
list(FILTER QKV_WASM_TESTS EXCLUDE REGEX "two_callers")
add_executable(unit_tests ${QKV_WASM_TESTS})
target_include_directories(unit_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(unit_tests PRIVATE QKV_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_compile_options(unit_tests PRIVATE -O1)
target_link_libraries(unit_tests PRIVATE qkv_inside wasm_gtest)
target_precompile_headers(unit_tests PRIVATE <algorithm> <cmath> <functional> <map> <memory> <optional> <string> <vector> <gtest/gtest.h>
  ${PROJECT_SOURCE_DIR}/src/qkv/ops/elementwise.h)
set_target_properties(unit_tests PROPERTIES CXX_COMPILER_LAUNCHER "")
target_link_options(unit_tests PRIVATE -O1 ${QKV_WASM_LINK} -sMAXIMUM_MEMORY=2147483648 -sENVIRONMENT=node -sNODERAWFS=1 -sEXIT_RUNTIME=1)
