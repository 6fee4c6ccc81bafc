# SPDX-License-Identifier: Apache-2.0
# What fairlock is compiled from, for each CMake build: the folders that the Makefile takes, so a
# new file needs no new line in either. Sets FAIRLOCK_TOP, FAIRLOCK_VERSION, FAIRLOCK_CORE_SOURCES
# (codec and lock, without any port) and FAIRLOCK_CORE_INCLUDES. With FAIRLOCK_SCRIPTS=hashes they
# are without the scripts' texts: boards/README.md says when that is right.
get_filename_component(FAIRLOCK_TOP "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

# CMake cannot look again before each build in a script, which is how ESP-IDF reads its components.
set(FAIRLOCK_GLOB CONFIGURE_DEPENDS)
if(CMAKE_SCRIPT_MODE_FILE)
  set(FAIRLOCK_GLOB)
endif()

file(GLOB FAIRLOCK_CORE_SOURCES ${FAIRLOCK_GLOB} "${FAIRLOCK_TOP}/resp/*.c" "${FAIRLOCK_TOP}/lock/*.c")
if(FAIRLOCK_SCRIPTS STREQUAL hashes)
  list(REMOVE_ITEM FAIRLOCK_CORE_SOURCES "${FAIRLOCK_TOP}/lock/scripts.c" "${FAIRLOCK_TOP}/lock/texts.c")
  list(APPEND FAIRLOCK_CORE_SOURCES "${FAIRLOCK_TOP}/lock/scripts/hashes.c")
endif()
set(FAIRLOCK_CORE_INCLUDES "${FAIRLOCK_TOP}/resp" "${FAIRLOCK_TOP}/port" "${FAIRLOCK_TOP}/lock")

file(STRINGS "${FAIRLOCK_TOP}/lock/fairlock.h" FAIRLOCK_VERSION REGEX "^#define FAIRLOCK_VERSION +\"")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" FAIRLOCK_VERSION "${FAIRLOCK_VERSION}")
