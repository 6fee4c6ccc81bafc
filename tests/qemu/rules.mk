# Suites with boards in the simulator: the host's unit suites on the target, contention, and faults.
QEMU_TESTS := $(patsubst tests/qemu/%.c,$(BUILD)/tests/qemu/%,$(wildcard tests/qemu/test_*.c))
QEMU_RIG := $(BUILD)/tests/qemu/rig.o $(BUILD)/tests/server/harness.o $(BUILD)/tests/server/proxy.o
QEMU_CONTENDER := $(BUILD)/tests/qemu/contender
ON_TARGET := $(foreach board,mps2-an385 mps2-an385-m0 riscv-virt,$(foreach suite,test_resp test_engine,\
  $(BUILD)/tests/qemu/$(suite)-$(board)))
SUITES += $(ON_TARGET) $(QEMU_TESTS)

$(BUILD)/tests/qemu/rig.o $(QEMU_TESTS:%=%.o): CPPFLAGS += -Itests/server -DFIRMWARE='"$(BUILD)/firmware"' \
  -DCONTENDER='"$(QEMU_CONTENDER)"' -DBRIDGE='"$(BUILD)/uart-bridge"'

$(QEMU_CONTENDER): $(BUILD)/tests/qemu/contender.o $(BUILD)/tests/qemu/contender_host.o $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(QEMU_TESTS): %: %.o $(QEMU_RIG) $(FRAME) $(BUILD)/liblock.a \
  | firmware $(QEMU_CONTENDER) $(BUILD)/uart-bridge $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# A suite on a board is a script that runs its image, and ends if it hangs.
$(ON_TARGET): | firmware
	@mkdir -p $(@D)
	@suite=$(@F); board=$${suite#*-}; suite=$${suite%%-*}; folder=$(BUILD)/firmware/$$board; \
	printf '%s\n' '#!/bin/sh' "exec timeout -k 5 300 $$folder/run $$folder/$$suite.elf" >$@
	@chmod +x $@

.PHONY: qemu-tests
qemu-tests: $(ON_TARGET) $(QEMU_TESTS) ## run the suites with boards in the simulator alone
	@sh tests/run.sh $(ON_TARGET) $(QEMU_TESTS)
