# SPDX-License-Identifier: Apache-2.0
# The conformance test of ports, on ours, and on a port with mistakes planted. On boards: tests/boards.
CONFORMANCE := $(BUILD)/tests/boards/conformance
CONFORMANCE_TESTS := $(addprefix $(CONFORMANCE)/,posix single sockets tls mbedtls faulty)
CONFORMANCE_FILES := port/conformance/conformance.c tests/boards/conformance/peer.c
CONFORMANCE_FLAGS = $(TEST_CFLAGS) -Iport/conformance -Itests/boards/conformance $(PEER)
PEER := -DPEER='"$(BUILD)/conformance-peer"'
SUITES += $(CONFORMANCE_TESTS)
$(call needs,$(addprefix $(CONFORMANCE)/,tls mbedtls),openssl-library $(BUILD)/tls/certificates/made)
$(call needs,$(CONFORMANCE)/mbedtls,mbedtls-library)

# The other end, on a host.
$(BUILD)/conformance-peer: $(BUILD)/port/conformance/peer.o
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

.PHONY: conformance-peer
conformance-peer: $(BUILD)/conformance-peer ## build the other end of a port under test, for port/conformance

$(CONFORMANCE)/peer.o: CPPFLAGS += $(PEER)

# port/single and the faulty port have types of their own, so all is compiled for each.
$(CONFORMANCE)/posix: tests/boards/conformance/host.c $(wildcard port/posix/*.c)
$(CONFORMANCE)/single: tests/boards/conformance/host.c $(addprefix port/posix/,socket.c resolve.c process.c clock.c idle.c)
$(CONFORMANCE)/single: TYPES := -Iport/single
$(CONFORMANCE)/sockets: tests/boards/conformance/host.c port/sockets/sockets.c $(addprefix port/posix/,clock.c threads.c process.c)
$(CONFORMANCE)/sockets: TYPES := -Itests/server/sockets -Iport/sockets
$(CONFORMANCE)/tls: tests/boards/conformance/tls.c tests/tls/wrap_openssl.c port/openssl/openssl.c $(wildcard port/posix/*.c) | openssl-library $(BUILD)/tls/certificates/made
$(CONFORMANCE)/mbedtls: tests/boards/conformance/tls.c tests/tls/wrap_mbedtls.c $(wildcard port/mbedtls/*.c port/posix/*.c) \
  | mbedtls-library openssl-library $(BUILD)/tls/certificates/made
$(CONFORMANCE)/mbedtls: TYPES = -DCERTIFICATES='"$(abspath $(BUILD)/tls/certificates)"' -DWITH_MBEDTLS -Iport/mbedtls
$(CONFORMANCE)/mbedtls: LDLIBS += -lmbedtls -lmbedx509 -lmbedcrypto -lssl -lcrypto
$(CONFORMANCE)/tls: TYPES = -DCERTIFICATES='"$(abspath $(BUILD)/tls/certificates)"'
$(CONFORMANCE)/tls: LDLIBS += -lssl -lcrypto
$(CONFORMANCE)/faulty: tests/boards/conformance/faulty.c
$(CONFORMANCE)/faulty: TYPES := -Itests/boards/conformance/faulty

$(CONFORMANCE_TESTS): $(CONFORMANCE_FILES) $(SUPPORT) $(wildcard port/conformance/*.h port/*.h tests/boards/conformance/*.h) \
  | $(BUILD)/conformance-peer
	@mkdir -p $(@D)
	$(CC) $(TYPES) $(CONFORMANCE_FLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(SUPPORT) $(LDLIBS)

# The transport over a cellular modem, boards/examples/modem, on a simulated one: always with a
# sanitizer. All but test_line, whose time is virtual, wait for what hangs, and are not
# part of `make test`.
MODEM := $(BUILD)/tests/boards/modem
MODEM_SOURCES := boards/examples/modem/modem.c boards/examples/modem/families.c
MODEM_LONG := $(addprefix $(MODEM)/,test_modem conformance conformance_simcom)
MODEM_TESTS := $(MODEM)/test_line $(MODEM_LONG)
MODEM_FLAGS = $(TEST_CFLAGS) -g -fsanitize=address,undefined -fno-sanitize-recover=all -Iboards/examples/modem
SUITES += $(MODEM_TESTS)
$(call needs,$(MODEM)/test_modem,python3 $(BUILD)/redis-server)
$(call needs,$(MODEM)/conformance $(MODEM)/conformance_simcom,python3)

$(MODEM_TESTS): $(MODEM_SOURCES) boards/examples/modem/modem.h port/port.h

# A modem that is deaf is restarted after 3 calls, which take 5 s.
$(MODEM)/test_modem: tests/boards/modem/test_modem.c tests/boards/modem/rig.c tests/boards/modem/rig.h $(BUILD)/tests/server/harness.o $(FRAME) \
  $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/fairlock $(BUILD)/redis-server
	@mkdir -p $(@D)
	$(CC) $(MODEM_FLAGS) -DMODEM_CALLS=3U -DFAIRLOCK='"$(BUILD)/fairlock"' -Itests/server -o $@ $(filter %.c %.o,$^) $(filter %.a,$^) $(LDLIBS)

$(MODEM)/test_line: tests/boards/modem/test_line.c tests/check.c tests/check_host.c
	@mkdir -p $(@D)
	$(CC) -Iport/single $(MODEM_FLAGS) -o $@ $(filter %.c,$^)

# A port for one task, so all is compiled for that. With large pieces, because on a busy machine each
# exchange waits for both processes.
$(MODEM)/conformance: tests/boards/modem/conformance.c tests/boards/modem/rig.c tests/boards/modem/rig.h $(CONFORMANCE_FILES) \
  $(addprefix port/posix/,clock.c idle.c) $(SUPPORT) | $(BUILD)/conformance-peer
	@mkdir -p $(@D)
	$(CC) -Iport/single $(CONFORMANCE_FLAGS) $(MODEM_FLAGS) -DMODEM_SEND_SIZE=1024U -DMODEM_RECEIVE_SIZE=1024U -o $@ $(filter %.c,$^) $(SUPPORT) $(LDLIBS)

$(MODEM)/conformance_simcom: $(MODEM)/conformance
	@printf '%s\n' '#!/bin/sh' 'exec $< simcom' >$@
	@chmod +x $@

# Suites with boards in the simulator: the host's unit suites on the target, contention, and faults.
PORT_TESTS := $(BUILD)/tests/boards/test_lwip $(BUILD)/tests/boards/test_uart
QEMU_TESTS := $(addprefix $(BUILD)/tests/boards/test_,conformance contention examples faults follow tls)
FREERTOS_TEST := $(BUILD)/tests/boards/test_freertos
QEMU_RIG := $(BUILD)/tests/boards/rig.o $(BUILD)/tests/server/harness.o
QEMU_CONTENDER := $(BUILD)/tests/boards/contender
ON_TARGET := $(foreach board,mps2-an385 mps2-an385-m0 riscv-virt,$(foreach suite,test_resp test_engine,\
  $(BUILD)/tests/boards/$(suite)-$(board)))
IMAGE_TESTS := $(BUILD)/tests/boards/no_heap $(BUILD)/tests/boards/sizes
SUITES += $(PORT_TESTS) $(ON_TARGET) $(QEMU_TESTS) $(IMAGE_TESTS)
$(call needs,$(BUILD)/tests/boards/test_lwip,$(BUILD)/lwip/src)
$(call needs,$(BUILD)/tests/boards/test_uart,$(BUILD)/redis-server)
$(call needs,$(ON_TARGET),firmware)
$(call needs,size-boards $(QEMU_TESTS) $(IMAGE_TESTS),python3 firmware $(BUILD)/redis-server)
$(call needs,freertos,firmware cargo=cargo-web $(BUILD)/redis-server)

$(addprefix $(BUILD)/tests/boards/,rig.o measure_stack.o) $(QEMU_TESTS:%=%.o) $(FREERTOS_TEST).o: CPPFLAGS += -Itests/server \
  -DFIRMWARE='"$(BUILD)/firmware"' -DFAIRLOCK='"$(BUILD)/fairlock"' -DCONTENDER='"$(QEMU_CONTENDER)"' -DBRIDGE='"$(BUILD)/uart-bridge"'

$(QEMU_CONTENDER): $(BUILD)/tests/boards/contender.o $(BUILD)/tests/boards/contender_host.o $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(FREERTOS_TEST): | freertos-image
$(QEMU_TESTS) $(FREERTOS_TEST): %: %.o $(QEMU_RIG) $(FRAME) $(SUPPORT) $(BUILD)/liblock.a \
  | firmware $(QEMU_CONTENDER) $(BUILD)/uart-bridge $(BUILD)/fairlock $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/tests/boards/test_tls.o $(BUILD)/tests/boards/measure_stack.o: CPPFLAGS += -Itests/tls
$(BUILD)/tests/boards/test_tls $(BUILD)/tests/boards/measure_stack: $(BUILD)/tests/tls/secure.o
$(BUILD)/tests/boards/test_conformance $(FREERTOS_TEST): $(BUILD)/tests/boards/conformance/peer.o | $(BUILD)/conformance-peer
$(BUILD)/tests/boards/test_follow: $(patsubst %,$(BUILD)/tests/failover/%.o,cluster net rig)

MEASURE := $(BUILD)/tests/boards/measure_stack
$(MEASURE): %: %.o $(QEMU_RIG) $(BUILD)/tests/check.o $(SUPPORT) $(BUILD)/liblock.a \
  | firmware $(BUILD)/uart-bridge $(BUILD)/fairlock $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The transports on the host, always with a sanitizer: the tests are about not using what has been
# freed.
PORT_FLAGS = $(TEST_CFLAGS) -g -fsanitize=address,undefined -fno-sanitize-recover=all
LWIP_ON_HOST := -Itests/boards/lwip -Iboards/common -isystem $(BUILD)/lwip/src/include
LWIP_FILES := $(addprefix core/,def.c dns.c inet_chksum.c init.c ip.c mem.c memp.c netif.c pbuf.c tcp.c tcp_in.c tcp_out.c \
  timeouts.c udp.c ipv4/icmp.c ipv4/ip4.c ipv4/ip4_addr.c)

$(BUILD)/tests/boards/test_lwip: tests/boards/test_lwip.c port/lwip/tcp.c port/lwip/seeds.c port/lwip/port_lwip.h tests/check.c \
  tests/check_host.c tests/boards/lwip/lwipopts.h boards/common/lwipopts.h | $(BUILD)/lwip/src
	@mkdir -p $(@D)/lwip
	cd $(@D)/lwip && $(CC) -w -g -O1 -fsanitize=address -I$(CURDIR)/tests/boards/lwip -I$(CURDIR)/boards/common \
	  -I$(abspath $(BUILD))/lwip/src/include -c $(LWIP_FILES:%=$(abspath $(BUILD))/lwip/src/%)
	$(CC) $(PORT_FLAGS) $(LWIP_ON_HOST) -Iport/lwip -o $@ $(filter-out %.h,$(filter %.c,$^)) $(@D)/lwip/*.o

$(BUILD)/tests/boards/test_uart: tests/boards/test_uart.c port/uart/uart.c port/uart/port_uart.h $(QEMU_RIG) $(FRAME) $(SUPPORT) \
  $(BUILD)/liblock.a | $(BUILD)/uart-bridge $(BUILD)/redis-server
	@mkdir -p $(@D)
	$(CC) $(PORT_FLAGS) -Itests/server -Iport/uart -o $@ $(filter-out %.h,$^) $(LDLIBS)

# A suite on a board is a script that runs its image, and ends if it hangs.
$(ON_TARGET): | firmware
	@mkdir -p $(@D)
	@suite=$(@F); board=$${suite#*-}; suite=$${suite%%-*}; folder=$(BUILD)/firmware/$$board; \
	printf '%s\n' '#!/bin/sh' "exec timeout -k 5 300 $$folder/run $$folder/$$suite.elf" >$@
	@chmod +x $@

# Scripts that look at the images.
$(IMAGE_TESTS): | firmware $(MEASURE)
	@printf '%s\n' '#!/bin/sh' 'exec sh tests/boards/$(@F).sh $(BUILD)' >$@
	@chmod +x $@

.PHONY: size-boards
size-boards: firmware $(MEASURE) ## print what the firmware costs on each board, and how deep its stack gets; TABLE=1: write it to boards/sizes.txt, which the tests hold the sizes against
	@sh boards/common/sizes.sh $(BUILD) $(if $(TABLE),>$(BUILD)/sizes.new && mv $(BUILD)/sizes.new boards/sizes.txt)

# The ports to copy, on FreeRTOS. Not part of `make test-all`: its kernel comes with a Rust crate, by
# cargo.
$(BUILD)/freertos/kernel: tests/boards/freertos/fetch.sh
	sh tests/boards/freertos/fetch.sh $(@D)
	@touch $@

.PHONY: freertos-image
freertos-image: firmware $(BUILD)/freertos/kernel
	@$(MAKE) --no-print-directory -f tests/boards/freertos/image.mk BOARD=mps2-an385 IMAGES="freertos application" BUILD=$(BUILD)

.PHONY: freertos
freertos: $(FREERTOS_TEST) ## test the ports to copy on FreeRTOS, which cargo gets
	@sh tests/tools/run.sh $<
