# SPDX-License-Identifier: Apache-2.0
# The unit suites on processors unlike the host: an AVR, whose int and size_t have 16 bits, and one
# that is big-endian. And the library as other programs see it.
$(call needs,compiler/avr-gcc,gcc-avr avr-libc)
$(call needs,compiler/s390x-linux-gnu-gcc,gcc-s390x-linux-gnu libc6-dev-s390x-cross)
$(call needs,on-avr,compiler/avr-gcc qemu-system-misc)
$(call needs,on-s390x,compiler/s390x-linux-gnu-gcc qemu-user $(BUILD)/redis-server)
$(call needs,portable,$$(PORTABLE))

# All of the library but the port of POSIX. Its data is put where it is used, not copied there from
# flash at the start: QEMU 7.2 goes wrong where that copy crosses 64 KB of flash.
AVR := $(BUILD)/avr
AVR_SUITES := $(AVR)/test_resp $(AVR)/test_engine $(AVR)/test_unpack
AVR_WARNINGS := -Wall -Wextra -Wpedantic -Wsign-conversion -Wshadow -Wmissing-prototypes $(if $(filter 1,$(WERROR)),-Werror)
AVR_FLAGS := -mmcu=atmega2560 -std=gnu11 -Os -g -ffunction-sections -Iresp -Iport -Iport/single -Ilock -Itests
AVR_LAYOUT := -Wl,--gc-sections,--defsym=__stack=0xffff,--defsym=__DATA_REGION_LENGTH__=0xfe00,--defsym=__do_copy_data=0
AVR_LIBRARY := $(patsubst %.c,$(AVR)/%.o,$(CORE))
$(AVR_LIBRARY): AVR_WARNINGS += -Wconversion

.PRECIOUS: $(AVR)/%.o
$(AVR)/%.o: %.c
	@mkdir -p $(@D)
	avr-gcc $(AVR_FLAGS) $(AVR_WARNINGS) -MMD -MP -c -o $@ $<

$(AVR)/liblock.a: $(AVR_LIBRARY)
	rm -f $@ && avr-ar rcs $@ $^

$(AVR)/%.elf: $(AVR)/tests/unit/%.o $(AVR)/tests/check.o $(AVR)/tests/portable/avr.o $(AVR)/liblock.a
	avr-gcc $(AVR_FLAGS) $(AVR_LAYOUT) -o $@.linked $(filter %.o,$^) $(filter %.a,$^)
	avr-objcopy --change-section-lma .data=0x800200 $@.linked $@

$(AVR)/test_engine.elf: $(ENGINE_TESTS:%.c=$(AVR)/%.o)
$(AVR)/test_unpack.elf: $(AVR)/tests/sim/sha1.o

$(AVR_SUITES): %: %.elf
	@printf '%s\n' '#!/bin/sh' 'exec sh tests/portable/avr.sh $<' >$@
	@chmod +x $@

.PHONY: on-avr
on-avr:
	@$(MAKE) --no-print-directory $(AVR_SUITES)
	@sh tests/tools/run.sh $(AVR_SUITES)

# The package for Arduino, on a simulated Mega 2560 with a serial line to this host.
MEGA := $(BUILD)/arduino/mega
MEGA_TEST := tests/portable/test_mega.sh
SUITES += $(MEGA_TEST)
$(call needs,compiler/arduino,compiler/avr-gcc arduino-core-avr)
$(call needs,$(MEGA_TEST),compiler/arduino libsimavr-dev zip $(BUILD)/redis-server)
$(MEGA_TEST): | all $(MEGA)/SerialLine.elf $(MEGA)/board $(BUILD)/uart-bridge $(BUILD)/redis-server

$(MEGA)/SerialLine.elf: $(BUILD)/arduino/Fairlock-$(VERSION).zip tests/portable/mega.sh tests/portable/mega.ino
	sh tests/portable/mega.sh $(BUILD)/arduino/Fairlock $(@D) $(BUILD)/arduino/Fairlock/examples/SerialLine/SerialLine.ino tests/portable/mega.ino

$(MEGA)/board: tests/portable/mega.c | $(MEGA)/SerialLine.elf
	$(CC) -std=c11 $(WARNINGS) -isystem /usr/include/simavr $(CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $< -lsimavr

# With one suite of those that talk to a real server, which is a program of the host's.
BIG_ENDIAN := $(BUILD)/big-endian
# Not with test_process, whose memory the simulator does not wipe in a forked process.
BIG_ENDIAN_SUITES := $(patsubst $(BUILD)/%,$(BIG_ENDIAN)/%,$(filter-out %/test_process,$(UNIT))) $(BIG_ENDIAN)/tests/server/test_rlock

.PHONY: on-s390x
on-s390x:
	@$(MAKE) --no-print-directory CC=s390x-linux-gnu-gcc AR=s390x-linux-gnu-ar BUILD=$(BIG_ENDIAN) $(BIG_ENDIAN_SUITES)
	@RUNNER='qemu-s390x -L /usr/s390x-linux-gnu' sh tests/tools/run.sh $(BIG_ENDIAN_SUITES)

PORTABLE = $(addprefix on-,$(or $(ON),avr s390x))

.PHONY: portable
portable: $(PORTABLE) ## run the unit suites on simulated processors unlike the host: with an int of 16 bits (ON=avr), and big-endian (ON=s390x)

# The library as programs link it, from C++ too.
LIBRARY_TEST := tests/portable/test_library.sh
SUITES += $(LIBRARY_TEST)
$(call needs,$(LIBRARY_TEST),g++ clang binutils python3-dev $(BUILD)/redis-server)
$(LIBRARY_TEST): | all $(BUILD)/redis-server

# And fairlock.hpp.
CXX_TEST := tests/portable/test_cxx.sh
SUITES += $(CXX_TEST)
$(call needs,$(CXX_TEST),g++ clang $(BUILD)/redis-server)
$(CXX_TEST): | all $(BUILD)/examples/guard $(BUILD)/redis-server

# And beside the headers of other systems.
NAMES_TEST := tests/portable/test_names.sh
SUITES += $(NAMES_TEST)
$(call needs,$(NAMES_TEST),g++ clang compiler/arm-none-eabi-gcc bearssl-library mbedtls-library openssl-library $(BUILD)/lwip/src \
  $(BUILD)/redis-server)
$(NAMES_TEST): | $(BUILD)/lwip/src $(BUILD)/redis-server


# The library without an operating system.
CORE_TEST := tests/portable/test_core.sh
SUITES += $(CORE_TEST)
$(call needs,$(CORE_TEST),$(foreach compiler,clang arm-none-eabi-gcc riscv64-unknown-elf-gcc,compiler/$(compiler)) $(BUILD)/redis-server)
$(CORE_TEST): | $(BUILD)/redis-server

# The command as one static program.
STATIC_TEST := tests/portable/test_static.sh
SUITES += $(STATIC_TEST)
$(call needs,$(STATIC_TEST),musl-tools binutils gcc openssl-library $(BUILD)/redis-server)
$(STATIC_TEST): | $(BUILD)/redis-server

# Other systems.
SYSTEMS_TEST := tests/portable/test_systems.sh
SUITES += $(SYSTEMS_TEST)
$(call needs,$(SYSTEMS_TEST),file qemu-user python3 pip3=python3-pip $(BUILD)/redis-server)
$(SYSTEMS_TEST): | all $(BUILD)/redis-server $(BUILD)/zig/ready

$(BUILD)/zig/ready: tests/portable/zig.txt
	rm -rf $(@D) && python3 -m pip -q install --root-user-action=ignore --require-hashes --only-binary :all: --no-deps --target $(@D) -r $<
	@touch $@

# What stacks of devices do and a host's does not, on each transport over sockets.
STACKS := $(BUILD)/tests/portable/stacks
STACKS_TESTS := $(STACKS)/sockets $(STACKS)/zephyr $(STACKS)/posix
SUITES += $(STACKS_TESTS)

$(STACKS)/sockets: port/sockets/sockets.c
$(STACKS)/sockets: STACK := -Itests/server/sockets -Iport/sockets -DRESETS=1
$(STACKS)/zephyr: port/zephyr/sockets.c tests/portable/zephyr/stand_in.c
$(STACKS)/zephyr: STACK = $(ZEPHYR_FLAGS)
$(STACKS)/posix: port/posix/socket.c
$(STACKS)/posix: STACK := -D__NuttX__ -DRESETS=1 -DOF_POSIX=1
$(STACKS_TESTS): tests/portable/stacks/stacks.c $(FRAME) $(SUPPORT) $(BUILD)/liblock.a $(wildcard port/*.h port/*/*.h)
	@mkdir -p $(@D)
	$(CC) $(STACK) $(TEST_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) $(filter %.a,$^) $(LDLIBS)

# port/zephyr on a stand-in for Zephyr, which comes first in the include path: tasks that share a
# client, what test_port asks of a transport, the contract of port.h, and what is Zephyr's alone. The
# port_posix.h there takes the place of port/posix's.
ZEPHYR := $(BUILD)/tests/portable/zephyr
ZEPHYR_FLAGS := -Itests/portable/zephyr -Iport/zephyr -DCONFIG_ARCH_POSIX -DCONFIG_DNS_RESOLVER -DCONFIG_FAIRLOCK_WAIT_MAX_MS=2500
ZEPHYR_PORT := $(wildcard port/zephyr/*.c) tests/portable/zephyr/stand_in.c
ZEPHYR_TESTS := $(addprefix $(ZEPHYR)/,threads transport conformance zephyr)
SUITES += $(ZEPHYR_TESTS)
$(call needs,$(ZEPHYR)/threads,$(BUILD)/redis-server)

$(ZEPHYR)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ZEPHYR_FLAGS) -Iport/conformance -Itests/boards/conformance $(TEST_CFLAGS) -MMD -MP $(CPPFLAGS) $(PEER) -c -o $@ $<

zephyr_objects = $(patsubst %.c,$(ZEPHYR)/%.o,$(CORE) $(ZEPHYR_PORT) $1)
$(ZEPHYR)/threads: $(call zephyr_objects,tests/server/test_threads.c tests/server/harness.c) | $(BUILD)/redis-server
$(ZEPHYR)/zephyr: $(call zephyr_objects,tests/portable/zephyr/test_zephyr.c)
$(ZEPHYR)/threads $(ZEPHYR)/zephyr: $(FRAME)
$(ZEPHYR)/conformance: $(call zephyr_objects,tests/boards/conformance/host.c tests/boards/conformance/peer.c port/conformance/conformance.c) \
  | $(BUILD)/conformance-peer
$(addprefix $(ZEPHYR)/,threads zephyr conformance): $(SUPPORT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

# The transport alone, with POSIX threads, which test_port looks into.
$(ZEPHYR)/test_port: tests/unit/test_port.c port/zephyr/sockets.c tests/portable/zephyr/stand_in.c $(FRAME) $(SUPPORT) \
  $(BUILD)/liblock.a $(wildcard port/*.h port/zephyr/*.h)
	@mkdir -p $(@D)
	$(CC) -Itests/portable/zephyr -Iport/posix $(ZEPHYR_FLAGS) $(TEST_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) $(filter %.a,$^) $(LDLIBS)

$(ZEPHYR)/transport: $(ZEPHYR)/test_port
	@printf '%s\n' '#!/bin/sh' 'exec $< transport:' >$@
	@chmod +x $@

# port/freertos_plus_tcp and port/freertos's threads on a stand-in for FreeRTOS and FreeRTOS-Plus-TCP,
# likewise; version 4 of the stack, and what is its alone also as version 3 has it.
PLUS_TCP := $(BUILD)/tests/portable/plus_tcp
PLUS_TCP_FLAGS := -Itests/portable/plus_tcp -Iport/freertos_plus_tcp -Iport/freertos
PLUS_TCP_PORT := $(wildcard port/freertos_plus_tcp/*.c) tests/portable/plus_tcp/stand_in.c
PLUS_TCP_TESTS := $(addprefix $(PLUS_TCP)/,threads transport conformance plus_tcp version3)
SUITES += $(PLUS_TCP_TESTS)
$(call needs,$(PLUS_TCP)/threads,$(BUILD)/redis-server)

$(PLUS_TCP)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(PLUS_TCP_FLAGS) -Iport/conformance -Itests/boards/conformance $(TEST_CFLAGS) -MMD -MP $(CPPFLAGS) $(PEER) -c -o $@ $<

plus_tcp_objects = $(patsubst %.c,$(PLUS_TCP)/%.o,$(CORE) $(PLUS_TCP_PORT) port/freertos/threads.c port/posix/clock.c $1)
$(PLUS_TCP)/threads: $(call plus_tcp_objects,tests/server/test_threads.c tests/server/harness.c) | $(BUILD)/redis-server
$(PLUS_TCP)/plus_tcp: $(call plus_tcp_objects,tests/portable/plus_tcp/test_plus_tcp.c)
$(PLUS_TCP)/threads $(PLUS_TCP)/plus_tcp: $(FRAME)
$(PLUS_TCP)/conformance: $(call plus_tcp_objects,tests/boards/conformance/host.c tests/boards/conformance/peer.c port/conformance/conformance.c) \
  | $(BUILD)/conformance-peer
$(addprefix $(PLUS_TCP)/,threads plus_tcp conformance): $(SUPPORT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

# With POSIX threads: the transport alone.
$(PLUS_TCP)/test_port: tests/unit/test_port.c
$(PLUS_TCP)/version3: tests/portable/plus_tcp/test_plus_tcp.c
$(PLUS_TCP)/version3: VERSION3 := -DipFR_TCP_VERSION_MAJOR=3
$(PLUS_TCP)/test_port $(PLUS_TCP)/version3: $(PLUS_TCP_PORT) $(FRAME) $(SUPPORT) $(BUILD)/liblock.a \
  $(wildcard port/*.h port/freertos_plus_tcp/*.h tests/portable/plus_tcp/*.h)
	@mkdir -p $(@D)
	$(CC) $(VERSION3) -Itests/portable/plus_tcp -Iport/posix $(PLUS_TCP_FLAGS) $(TEST_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) $(filter %.a,$^) $(LDLIBS)

$(PLUS_TCP)/transport: $(PLUS_TCP)/test_port
	@printf '%s\n' '#!/bin/sh' 'exec $< transport:' >$@
	@chmod +x $@

# The same for port/netx on a stand-in for ThreadX and NetX Duo.
NETX := $(BUILD)/tests/portable/netx
NETX_FLAGS := -Itests/portable/netx -Iport/netx
NETX_PORT := $(wildcard port/netx/*.c) port/posix/clock.c tests/portable/netx/stand_in.c
NETX_TESTS := $(addprefix $(NETX)/,threads transport conformance netx no_reset)
SUITES += $(NETX_TESTS)
$(call needs,$(NETX)/threads,$(BUILD)/redis-server)

$(NETX)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(NETX_FLAGS) -Iport/conformance -Itests/boards/conformance $(TEST_CFLAGS) -MMD -MP $(CPPFLAGS) $(PEER) -c -o $@ $<

netx_objects = $(patsubst %.c,$(NETX)/%.o,$(CORE) $(NETX_PORT) $1)
$(NETX)/threads: $(call netx_objects,tests/server/test_threads.c tests/server/harness.c) | $(BUILD)/redis-server
$(NETX)/netx: $(call netx_objects,tests/portable/netx/test_netx.c)
$(NETX)/threads $(NETX)/netx: $(FRAME)
$(NETX)/conformance: $(call netx_objects,tests/boards/conformance/host.c tests/boards/conformance/peer.c port/conformance/conformance.c) \
  | $(BUILD)/conformance-peer
$(addprefix $(NETX)/,threads netx conformance): $(SUPPORT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

$(NETX)/test_port: tests/unit/test_port.c port/netx/tcp.c tests/portable/netx/stand_in.c $(FRAME) $(SUPPORT) \
  $(BUILD)/liblock.a $(wildcard port/*.h port/netx/*.h tests/portable/netx/*.h)
	@mkdir -p $(@D)
	$(CC) -Itests/portable/netx -Iport/posix $(NETX_FLAGS) $(TEST_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) $(filter %.a,$^) $(LDLIBS)

# NetX Duo configured to end no connection by a reset.
$(NETX)/no_reset: tests/portable/netx/test_netx.c $(NETX_PORT) $(FRAME) $(SUPPORT) $(BUILD)/liblock.a \
  $(wildcard port/*.h port/netx/*.h tests/portable/netx/*.h)
	@mkdir -p $(@D)
	$(CC) $(NETX_FLAGS) -DNX_DISABLE_RESET_DISCONNECT $(TEST_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) $(filter %.a,$^) $(LDLIBS)

$(NETX)/transport: $(NETX)/test_port
	@printf '%s\n' '#!/bin/sh' 'exec $< transport:' >$@
	@chmod +x $@

# The library by CMake.
CMAKE_TEST := tests/portable/test_cmake.sh
SUITES += $(CMAKE_TEST)
$(call needs,$(CMAKE_TEST),cmake g++ binutils compiler/arm-none-eabi-gcc mbedtls-library openssl-library $(BUILD)/lwip/src $(BUILD)/redis-server)
$(CMAKE_TEST): | all $(BUILD)/lwip/src $(BUILD)/redis-server

# The library as an application of NuttX's.
NUTTX_TEST := tests/portable/test_nuttx.sh
SUITES += $(NUTTX_TEST)
$(call needs,$(NUTTX_TEST),cmake kconfig-frontends-nox $(BUILD)/redis-server)
$(NUTTX_TEST): | all $(BUILD)/conformance-peer $(BUILD)/redis-server

# port/riot's threads on a stand-in for RIOT's kernel, with the transport of port/sockets: tasks that
# share a client, and the rules of port.h for tasks. And boards/riot by stand-ins of RIOT's Makefiles.
RIOT := $(BUILD)/tests/portable/riot
RIOT_TESTS := $(RIOT)/threads $(RIOT)/conformance tests/portable/test_riot.sh
RIOT_PORT := port/riot/threads.c $(wildcard port/sockets/*.c) tests/portable/riot/stand_in.c
SUITES += $(RIOT_TESTS)
$(call needs,$(RIOT)/threads,$(BUILD)/redis-server)
$(call needs,tests/portable/test_riot.sh,binutils $(BUILD)/lwip/src $(BUILD)/redis-server)
tests/portable/test_riot.sh: | all $(BUILD)/lwip/src $(BUILD)/redis-server

$(RIOT)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -Itests/portable/riot -Iport/riot -Itests/server/sockets -Iport/sockets -Iport/conformance -Itests/boards/conformance \
	  $(TEST_CFLAGS) -MMD -MP $(CPPFLAGS) $(PEER) -c -o $@ $<

riot_objects = $(patsubst %.c,$(RIOT)/%.o,$(CORE) $(RIOT_PORT) $1)
$(RIOT)/threads: $(call riot_objects,tests/server/test_threads.c tests/server/harness.c) $(FRAME) | $(BUILD)/redis-server
$(RIOT)/conformance: $(call riot_objects,tests/boards/conformance/host.c tests/boards/conformance/peer.c port/conformance/conformance.c) \
  | $(BUILD)/conformance-peer
$(RIOT)/threads $(RIOT)/conformance: $(SUPPORT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

# The library for Arduino, from its package alone, on stand-ins of our own for ArduinoCore-API's
# classes: its rules and bytes, its sketches, the class against a real server, and port/conformance
# through a Client.
ARDUINO_MADE := $(BUILD)/arduino/Fairlock-$(VERSION).zip
ARDUINO_PACKAGE_TEST := tests/portable/arduino/test_package.sh
ARDUINO_CLASS_TEST := tests/portable/arduino/test_class.sh
ARDUINO_CONFORMANCE := $(BUILD)/tests/portable/arduino/conformance
ARDUINO_TESTS := $(ARDUINO_PACKAGE_TEST) $(ARDUINO_CLASS_TEST) $(ARDUINO_CONFORMANCE)
SUITES += $(ARDUINO_TESTS)
$(call needs,$(ARDUINO_PACKAGE_TEST),clang g++ python3 unzip $(ARDUINO_MADE) $(BUILD)/redis-server)
$(call needs,$(ARDUINO_CLASS_TEST),clang g++ $(ARDUINO_MADE) $(BUILD)/redis-server)
$(call needs,$(ARDUINO_CONFORMANCE),g++ $(ARDUINO_MADE))
$(ARDUINO_PACKAGE_TEST) $(ARDUINO_CLASS_TEST): | $(ARDUINO_MADE) $(BUILD)/fairlock $(BUILD)/redis-server

ARDUINO_SOURCE := $(BUILD)/arduino/Fairlock/src
ARDUINO_OBJECTS := $(patsubst %.c,$(BUILD)/tests/portable/arduino/%.o,$(notdir $(CORE)) conformance_rules.c peer.c)

$(BUILD)/tests/portable/arduino/%.o: $(ARDUINO_MADE)
	@mkdir -p $(@D)
	$(CC) -std=c11 $(CFLAGS) -c -o $@ $(ARDUINO_SOURCE)/fairlock/$*.c

$(BUILD)/tests/portable/arduino/conformance_rules.o: port/conformance/conformance.c $(ARDUINO_MADE)
	@mkdir -p $(@D)
	$(CC) -std=c11 $(WARNINGS) -I$(ARDUINO_SOURCE)/fairlock $(CFLAGS) -c -o $@ $<

$(BUILD)/tests/portable/arduino/peer.o: tests/boards/conformance/peer.c $(BUILD)/conformance-peer
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(PEER) -c -o $@ $<

$(ARDUINO_CONFORMANCE): tests/portable/arduino/conformance.cpp $(wildcard tests/portable/arduino/core/*) $(ARDUINO_OBJECTS) $(SUPPORT)
	g++ -std=c++11 $(filter-out -Wmissing-prototypes,$(WARNINGS)) -Itests/portable/arduino/core -I$(ARDUINO_SOURCE) -I$(ARDUINO_SOURCE)/fairlock \
	  -Iport/conformance -Itests/boards/conformance $(CXXFLAGS) -o $@ $< tests/portable/arduino/core/core.cpp $(ARDUINO_SOURCE)/Fairlock.cpp \
	  $(filter %.o %.a,$^) $(LDLIBS)

# The sample on Zephyr itself, for whoever has it. Nothing here gets it.
$(call needs,zephyr,$(BUILD)/redis-server)

.PHONY: zephyr
zephyr: all $(BUILD)/redis-server ## build Zephyr's sample with your tree of Zephyr, ZEPHYR_BASE=, and run it in QEMU
	@sh tests/portable/test_zephyr_sample.sh
