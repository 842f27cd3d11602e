# Runs PROGRAM with ARGUMENTS and fails unless its exit code is EXPECTED_CODE (0) and its standard output equals the file EXPECTED.
if(NOT DEFINED EXPECTED_CODE)
  set(EXPECTED_CODE 0)
endif()
execute_process(COMMAND ${PROGRAM} ${ARGUMENTS} OUTPUT_VARIABLE printed RESULT_VARIABLE code)
file(READ ${EXPECTED} expected)
if(NOT code STREQUAL EXPECTED_CODE OR NOT printed STREQUAL expected)
  message(FATAL_ERROR "exit code ${code}, expected ${EXPECTED_CODE}; printed:\n${printed}\nexpected:\n${expected}")
endif()
