# The page's build (preset wasm): the library, the explorer's API and its door, compiled by Debian's emscripten. One
# thread, 128-bit vectors, no fused multiply-add. docs/wasm.md says what differs.

# Headers of libraries that have no code of their own, or whose code src/qkv/wasm stands in for.
set(QKV_WASM_HEADERS ${PROJECT_BINARY_DIR}/headers)
foreach(name hwy fmt nlohmann utf8proc.h Random123)
  if(EXISTS /usr/include/${name})
    file(MAKE_DIRECTORY ${QKV_WASM_HEADERS})
    file(CREATE_LINK /usr/include/${name} ${QKV_WASM_HEADERS}/${name} SYMBOLIC)
  endif()
endforeach()

set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
add_compile_options(-Wall -Wextra -ffp-contract=off -fno-math-errno -msimd128 -fwasm-exceptions -flto -finline-functions
  "SHELL:-include ${PROJECT_SOURCE_DIR}/src/qkv/wasm/standard.h")
add_link_options(-fwasm-exceptions -flto)
add_compile_definitions(FMT_HEADER_ONLY=1 UTF8PROC_STATIC)

# Parts that need a library, an operating system or files of other programs: src/qkv/wasm has their replacements.
set(QKV_WASM_LEFT_OUT "core/parallel" "ranks/.*" "plot/(png|save|terminal.*|text_canvas)" "io/(gzip|zip|png|yaml_events)"
  "data/(subwords|subword_check|pretrained_tokenizer|byte_pairs|llama_codecs|marian_codec|piece_table|token_.*|tokenizer_.*)"
  "data/(unigram|vocabulary_codecs|word_piece|added_tokens|young_characters|image_files)" "tasks/pretrained/.*" "tasks/.*leaks"
  "tasks/(vision|encoding)/(run|task)" "tasks/encoding/data" "eval/(bleu|bleu_tokenizers|chrf|metrics|significance|unicode|ngrams)"
  "report/(pretrained|scores|scaling|alignments)" "serve/(http|server|page|page_file|bench_models|site|trainer|gate|recorded|events)" "wasm/door")
file(GLOB_RECURSE QKV_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/qkv/*.cpp)
list(FILTER QKV_SOURCES EXCLUDE REGEX "/src/qkv/(cli|labs)/")
foreach(name IN LISTS QKV_WASM_LEFT_OUT)
  list(FILTER QKV_SOURCES EXCLUDE REGEX "/src/qkv/${name}\\.cpp$")
endforeach()

# Highway 1.0.3 has no vectors of doubles for WebAssembly: these kernels use its portable ones.
foreach(name optimizer reduce gauss_line leave_one_out smoothing)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/qkv/kernels/${name}.cpp PROPERTIES COMPILE_DEFINITIONS HWY_COMPILE_ONLY_EMU128)
endforeach()

set_source_files_properties(${PROJECT_SOURCE_DIR}/src/qkv/wasm/value_names.cpp PROPERTIES COMPILE_DEFINITIONS consteval=constexpr
  SKIP_PRECOMPILE_HEADERS ON)
# Kernels are compiled for speed, the rest for the time that it takes to load. Objects are LLVM's, and become code when
# the whole is linked: there each function is kept once, and only if something calls it.
set(QKV_FAST_SOURCES ${QKV_SOURCES})
list(FILTER QKV_FAST_SOURCES INCLUDE REGEX "/src/qkv/kernels/")
list(FILTER QKV_SOURCES EXCLUDE REGEX "/src/qkv/kernels/")
set(QKV_JSON_SOURCES ${QKV_SOURCES})
list(FILTER QKV_JSON_SOURCES INCLUDE REGEX "/src/qkv/serve/")
list(FILTER QKV_SOURCES EXCLUDE REGEX "/src/qkv/serve/")
add_library(qkv_fast OBJECT ${QKV_FAST_SOURCES})
add_library(qkv_small OBJECT ${QKV_SOURCES} ${PROJECT_BINARY_DIR}/embedded_presets.cpp)
add_library(qkv_json OBJECT ${QKV_JSON_SOURCES})
set_target_properties(qkv_json PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
foreach(part fast small json)
  target_include_directories(qkv_${part} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(qkv_${part} SYSTEM PUBLIC ${QKV_WASM_HEADERS})
  target_compile_features(qkv_${part} PUBLIC cxx_std_20)
endforeach()
target_compile_options(qkv_small PRIVATE -Oz)
target_compile_options(qkv_json PRIVATE -Oz)
target_compile_definitions(qkv_small PRIVATE QKV_VERSION="${PROJECT_VERSION}")
# Most of a build is reading headers: here they are read once per group.
set(QKV_WASM_EVERYWHERE <algorithm> <cmath> <cstring> <functional> <map> <memory> <optional> <span> <string> <vector>
  ${PROJECT_SOURCE_DIR}/src/qkv/core/check.h ${PROJECT_SOURCE_DIR}/src/qkv/tensor/tensor.h)
target_precompile_headers(qkv_fast PRIVATE ${QKV_WASM_EVERYWHERE})
target_precompile_headers(qkv_small PRIVATE ${QKV_WASM_EVERYWHERE} <filesystem> <fstream> <set> <variant> <fmt/format.h>
  <nlohmann/json.hpp>)
target_precompile_headers(qkv_json PRIVATE ${QKV_WASM_EVERYWHERE} <filesystem> <variant> <nlohmann/json.hpp>)
set_target_properties(qkv_fast qkv_small qkv_json PROPERTIES CXX_COMPILER_LAUNCHER "")
add_library(qkv_inside STATIC $<TARGET_OBJECTS:qkv_fast> $<TARGET_OBJECTS:qkv_small> $<TARGET_OBJECTS:qkv_json>)
target_include_directories(qkv_inside PUBLIC ${PROJECT_SOURCE_DIR}/src)
target_include_directories(qkv_inside SYSTEM PUBLIC ${QKV_WASM_HEADERS})
target_compile_features(qkv_inside PUBLIC cxx_std_20)

# The engine of the page: engine.js loads engine.wasm. The JavaScript optimizer of this emscripten does not run on newer
# Node, so only wasm-opt optimizes after the link; web/engine.mjs makes the script small.
add_executable(engine src/qkv/wasm/door.cpp)
target_link_libraries(engine PRIVATE qkv_inside)
target_compile_options(engine PRIVATE -Oz)
set(QKV_WASM_LINK -sALLOW_MEMORY_GROWTH=1 -sABORTING_MALLOC=0 -sTOTAL_STACK=4194304)
target_link_options(engine PRIVATE -O1 --profiling-funcs ${QKV_WASM_LINK} -sMAXIMUM_MEMORY=1073741824 -sMODULARIZE=1 -sEXPORT_NAME=createQkv
  -sENVIRONMENT=worker,node -sFORCE_FILESYSTEM=1 -sINVOKE_RUN=0 --no-entry
  -sEXPORTED_FUNCTIONS=_qkv_ask,_qkv_status,_qkv_scan,_qkv_catalogue,_malloc,_free -sEXPORTED_RUNTIME_METHODS=ccall,FS)
find_program(WASM_OPT wasm-opt REQUIRED)
add_custom_command(OUTPUT engine.small.wasm DEPENDS engine
  COMMAND ${WASM_OPT} -Oz -ocimfs 10 -aimfs 2 --strip-debug --strip-producers --enable-simd --enable-exception-handling --enable-bulk-memory
          --enable-nontrapping-float-to-int --enable-sign-ext --enable-mutable-globals engine.wasm -o engine.small.wasm)
add_custom_target(page_engine ALL DEPENDS engine.small.wasm)

# The speed table of qkv bench under Node (web/engine/speed.mjs).
add_executable(speed EXCLUDE_FROM_ALL bench/page/speed.cpp src/qkv/cli/bench_lines.cpp src/qkv/cli/bench_models.cpp)
target_link_libraries(speed PRIVATE qkv_inside)
target_link_options(speed PRIVATE -O1 ${QKV_WASM_LINK} -sMAXIMUM_MEMORY=2147483648 -sENVIRONMENT=node -sEXIT_RUNTIME=1)

# The unit tests that make sense here, under Node (./test --wasm): what computes, without files of other programs, processes
# or threads. docs/wasm.md says what is left out and why.
if(QKV_BUILD_TESTS)
  include(${CMAKE_CURRENT_LIST_DIR}/wasm_tests.cmake)
endif()
