# SPDX-License-Identifier: Apache-2.0
# Suites with boards in the simulator: the host's unit suites on the target, contention, and faults.
PORT_TESTS := $(BUILD)/tests/qemu/test_lwip $(BUILD)/tests/qemu/test_uart
QEMU_TESTS := $(addprefix $(BUILD)/tests/qemu/test_,conformance contention examples faults follow tls)
FREERTOS_TEST := $(BUILD)/tests/qemu/test_freertos
QEMU_RIG := $(BUILD)/tests/qemu/rig.o $(BUILD)/tests/server/harness.o
QEMU_CONTENDER := $(BUILD)/tests/qemu/contender
ON_TARGET := $(foreach board,mps2-an385 mps2-an385-m0 riscv-virt,$(foreach suite,test_resp test_engine,\
  $(BUILD)/tests/qemu/$(suite)-$(board)))
IMAGE_TESTS := $(BUILD)/tests/qemu/no_heap $(BUILD)/tests/qemu/sizes
SUITES += $(PORT_TESTS) $(ON_TARGET) $(QEMU_TESTS) $(IMAGE_TESTS)
$(call needs,$(BUILD)/tests/qemu/test_lwip,$(BUILD)/lwip/src)
$(call needs,$(BUILD)/tests/qemu/test_uart,$(BUILD)/redis-server)
$(call needs,$(ON_TARGET),firmware)
$(call needs,size-boards size-table $(QEMU_TESTS) $(IMAGE_TESTS),python3 firmware $(BUILD)/redis-server)
$(call needs,qemu-tests,$(PORT_TESTS) $(ON_TARGET) $(QEMU_TESTS) $(IMAGE_TESTS))
$(call needs,freertos,firmware cargo=cargo-web $(BUILD)/redis-server)

$(addprefix $(BUILD)/tests/qemu/,rig.o measure_stack.o) $(QEMU_TESTS:%=%.o) $(FREERTOS_TEST).o: CPPFLAGS += -Itests/server \
  -DFIRMWARE='"$(BUILD)/firmware"' -DFAIRLOCK='"$(BUILD)/fairlock"' -DCONTENDER='"$(QEMU_CONTENDER)"' -DBRIDGE='"$(BUILD)/uart-bridge"'

$(QEMU_CONTENDER): $(BUILD)/tests/qemu/contender.o $(BUILD)/tests/qemu/contender_host.o $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(FREERTOS_TEST): | freertos-image
$(QEMU_TESTS) $(FREERTOS_TEST): %: %.o $(QEMU_RIG) $(FRAME) $(SUPPORT) $(BUILD)/liblock.a \
  | firmware $(QEMU_CONTENDER) $(BUILD)/uart-bridge $(BUILD)/fairlock $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/tests/qemu/test_tls.o $(BUILD)/tests/qemu/measure_stack.o: CPPFLAGS += -Itests/bearssl
$(BUILD)/tests/qemu/test_tls $(BUILD)/tests/qemu/measure_stack: $(BUILD)/tests/bearssl/secure.o
$(BUILD)/tests/qemu/test_conformance $(FREERTOS_TEST): $(BUILD)/tests/conformance/peer.o | $(BUILD)/conformance-peer
$(BUILD)/tests/qemu/test_follow: $(patsubst %,$(BUILD)/tests/failover/%.o,cluster net rig)

MEASURE := $(BUILD)/tests/qemu/measure_stack
$(MEASURE): %: %.o $(QEMU_RIG) $(BUILD)/tests/check.o $(SUPPORT) $(BUILD)/liblock.a \
  | firmware $(BUILD)/uart-bridge $(BUILD)/fairlock $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The transports on the host, always with a sanitizer: the tests are about not using what has been
# freed.
PORT_FLAGS = $(TEST_CFLAGS) -g -fsanitize=address,undefined -fno-sanitize-recover=all
LWIP_ON_HOST := -Itests/qemu/lwip -Iboards/common -isystem $(BUILD)/lwip/src/include
LWIP_FILES := $(addprefix core/,def.c dns.c inet_chksum.c init.c ip.c mem.c memp.c netif.c pbuf.c tcp.c tcp_in.c tcp_out.c \
  timeouts.c udp.c ipv4/icmp.c ipv4/ip4.c ipv4/ip4_addr.c)

$(BUILD)/tests/qemu/test_lwip: tests/qemu/test_lwip.c port/lwip/tcp.c port/lwip/seeds.c port/lwip/port_lwip.h tests/check.c \
  tests/check_host.c tests/qemu/lwip/lwipopts.h boards/common/lwipopts.h | $(BUILD)/lwip/src
	@mkdir -p $(@D)/lwip
	cd $(@D)/lwip && $(CC) -w -g -O1 -fsanitize=address -I$(CURDIR)/tests/qemu/lwip -I$(CURDIR)/boards/common \
	  -I$(abspath $(BUILD))/lwip/src/include -c $(LWIP_FILES:%=$(abspath $(BUILD))/lwip/src/%)
	$(CC) $(PORT_FLAGS) $(LWIP_ON_HOST) -Iport/lwip -o $@ $(filter-out %.h,$(filter %.c,$^)) $(@D)/lwip/*.o

$(BUILD)/tests/qemu/test_uart: tests/qemu/test_uart.c port/uart/uart.c port/uart/port_uart.h $(QEMU_RIG) $(FRAME) $(SUPPORT) \
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
	@printf '%s\n' '#!/bin/sh' 'exec sh tests/qemu/$(@F).sh $(BUILD)' >$@
	@chmod +x $@

.PHONY: size-boards
size-boards: firmware $(MEASURE) ## print what the firmware costs on each board, and how deep its stack gets
	@sh boards/common/sizes.sh $(BUILD)

.PHONY: size-table
size-table: firmware $(MEASURE) ## update boards/sizes.txt, which the tests hold the sizes against
	@sh boards/common/sizes.sh $(BUILD) >$(BUILD)/sizes.new && mv $(BUILD)/sizes.new boards/sizes.txt

.PHONY: qemu-tests
qemu-tests: $(PORT_TESTS) $(ON_TARGET) $(QEMU_TESTS) $(IMAGE_TESTS) ## run the suites of the firmware alone
	@sh tests/tools/run.sh $(PORT_TESTS) $(ON_TARGET) $(QEMU_TESTS) $(IMAGE_TESTS)

# The ports to copy, on FreeRTOS. Not part of `make test-all`: its kernel comes with a Rust crate, by
# cargo.
$(BUILD)/freertos/kernel: tests/qemu/freertos/fetch.sh
	sh tests/qemu/freertos/fetch.sh $(@D)
	@touch $@

.PHONY: freertos-image
freertos-image: firmware $(BUILD)/freertos/kernel
	@$(MAKE) --no-print-directory -f tests/qemu/freertos/image.mk BOARD=mps2-an385 IMAGES="freertos application" BUILD=$(BUILD)

.PHONY: freertos
freertos: $(FREERTOS_TEST) ## test the ports to copy on FreeRTOS, which cargo gets
	@sh tests/tools/run.sh $<
