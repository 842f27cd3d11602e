# Libraries with every kind of entry: the check names the wrong ones and no other.
# Variables: COMPILER, SOURCE (a file to compile), CHECK (the script).
execute_process(COMMAND mktemp -d OUTPUT_VARIABLE work OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
function(library name path)
  execute_process(COMMAND ${COMPILER} -shared -fPIC -nostdlib "-Wl,-rpath,${path}" ${SOURCE} -o ${work}/lib${name}.so COMMAND_ERROR_IS_FATAL ANY)
endfunction()
library(good "/usr/lib:$ORIGIN/../lib")
execute_process(COMMAND ${CHECK} ${work} OUTPUT_VARIABLE printed RESULT_VARIABLE code)
if(NOT code EQUAL 0 OR NOT printed STREQUAL "1 programs and libraries checked, 0 wrong entries\n")
  message(FATAL_ERROR "a sound library is refused, exit code ${code}: ${printed}")
endif()
library(wrong "$ORIGIN/../:::")
library(relative "/usr/lib:lib")
execute_process(COMMAND ${CHECK} ${work} COMMAND sort OUTPUT_VARIABLE printed RESULTS_VARIABLE codes)
set(expected [[3 programs and libraries checked, 4 wrong entries
librelative.so: the entry "lib" of its RUNPATH is relative
libwrong.so: the entry "" of its RUNPATH is empty
libwrong.so: the entry "" of its RUNPATH is empty
libwrong.so: the entry "" of its RUNPATH is empty
]])
file(REMOVE_RECURSE ${work})
if(NOT codes STREQUAL "1;0" OR NOT printed STREQUAL expected)
  message(FATAL_ERROR "exit codes ${codes}, printed:\n${printed}\nexpected:\n${expected}")
endif()
