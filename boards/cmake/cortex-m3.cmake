# SPDX-License-Identifier: Apache-2.0
# A toolchain file for a Cortex-M3 without an operating system, by GNU's compiler:
#   cmake -S boards/cmake -B build/cortex-m3 -DCMAKE_TOOLCHAIN_FILE=cortex-m3.cmake
# For another processor of ARM's, copy it and change one line.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m3 -mthumb -ffunction-sections -fdata-sections")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # a program would need a board's start
