# Compiles SOURCE with COMPILER and fails unless the compiler fails with the text that the first line of SOURCE expects.
file(STRINGS ${SOURCE} first LIMIT_COUNT 1)
string(REGEX REPLACE "^// expected: " "" expected "${first}")
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I ${INCLUDE} ${SOURCE} ERROR_VARIABLE said RESULT_VARIABLE code
  OUTPUT_QUIET)
string(FIND "${said}" "${expected}" found)
if(expected STREQUAL "nothing")  # the program that the others are variations of
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "does not compile:\n${said}")
  endif()
elseif(code EQUAL 0 OR found EQUAL -1)
  message(FATAL_ERROR "exit code ${code}, expected an error with\n${expected}\ngot\n${said}")
endif()
