# SPDX-License-Identifier: Apache-2.0
# The module for ports of MicroPython that are built by CMake: USER_C_MODULES=FAIRLOCK/boards/micropython/module/micropython.cmake
get_filename_component(FAIRLOCK_TOP ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
add_library(usermod_fairlock INTERFACE)
file(GLOB FAIRLOCK_RESP ${FAIRLOCK_TOP}/resp/*.c)
target_sources(usermod_fairlock INTERFACE ${CMAKE_CURRENT_LIST_DIR}/modfairlock.c ${FAIRLOCK_TOP}/boards/core/core.c
  ${FAIRLOCK_RESP})
foreach(name abandon engine handle links pipeline reply request schedule scripts share status texts turns version)
  target_sources(usermod_fairlock INTERFACE ${FAIRLOCK_TOP}/lock/${name}.c)
endforeach()
target_include_directories(usermod_fairlock INTERFACE ${FAIRLOCK_TOP}/resp ${FAIRLOCK_TOP}/port ${FAIRLOCK_TOP}/port/single
  ${FAIRLOCK_TOP}/lock)
target_compile_definitions(usermod_fairlock INTERFACE FAIRLOCK_CORE_SEND_SIZE=512)
target_link_libraries(usermod INTERFACE usermod_fairlock)
