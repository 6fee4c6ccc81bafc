# SPDX-License-Identifier: Apache-2.0
# A stand-in for the functions of NuttX's CMake build that an application's CMakeLists.txt calls: what
# they make are programs of the host's. The sources of a library are noted in ${OUT}/sources.
add_library(nuttx INTERFACE)
define_property(TARGET PROPERTY NUTTX_INCLUDE_DIRECTORIES BRIEF_DOCS "as NuttX" FULL_DOCS "as NuttX")

# As NuttX does, to each target: warnings, and the include folders that applications have asked for.
function(as_nuttx_compiles target)
  target_compile_definitions(${target} PRIVATE __NuttX__)
  target_compile_options(${target} PRIVATE -Wall -Wstrict-prototypes -Wshadow -Wundef -Werror)
  target_include_directories(${target} PRIVATE ${OUT}/nuttx
    "$<GENEX_EVAL:$<TARGET_PROPERTY:nuttx,NUTTX_INCLUDE_DIRECTORIES>>")
endfunction()

function(nuttx_add_library target)
  add_library(${target} ${ARGN})
  as_nuttx_compiles(${target})
  file(GENERATE OUTPUT ${OUT}/sources CONTENT "$<JOIN:$<TARGET_PROPERTY:${target},SOURCES>,\n>\n")
endfunction()

function(nuttx_add_application)
  cmake_parse_arguments(asked "" "NAME;PRIORITY;STACKSIZE;MODULE" "SRCS;DEPENDS;INCLUDE_DIRECTORIES" ${ARGN})
  if(asked_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "not known: ${asked_UNPARSED_ARGUMENTS}")
  endif()
  set(target apps_${asked_NAME})
  add_library(${target} STATIC ${asked_SRCS})
  as_nuttx_compiles(${target})
  target_include_directories(${target} BEFORE PRIVATE ${asked_INCLUDE_DIRECTORIES})
  target_link_libraries(${target} PRIVATE ${asked_DEPENDS})
  list(GET asked_SRCS 0 main)
  set_property(SOURCE ${main} APPEND PROPERTY COMPILE_DEFINITIONS main=${asked_NAME}_main)
  set(launcher ${CMAKE_CURRENT_BINARY_DIR}/${asked_NAME}.c)
  file(WRITE ${launcher}
    "int ${asked_NAME}_main(int, char **); int main(int argc, char **argv) { return ${asked_NAME}_main(argc, argv); }\n")
  add_executable(${asked_NAME} ${launcher})
  target_link_libraries(${asked_NAME} PRIVATE ${target} Threads::Threads)
  set_target_properties(${asked_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${OUT})
  file(APPEND ${OUT}/registered "${asked_NAME} ${asked_PRIORITY} ${asked_STACKSIZE} ${asked_MODULE}\n")
endfunction()
