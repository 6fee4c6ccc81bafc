# SPDX-License-Identifier: Apache-2.0
# The transport over a cellular modem, boards/examples/modem, on a simulated one: always with a
# sanitizer. All but test_line, whose time is virtual, wait for what hangs, and are not
# part of `make test`.
MODEM := $(BUILD)/tests/modem
MODEM_SOURCES := boards/examples/modem/modem.c boards/examples/modem/families.c
MODEM_LONG := $(addprefix $(MODEM)/,test_modem conformance conformance_simcom)
MODEM_TESTS := $(MODEM)/test_line $(MODEM_LONG)
MODEM_FLAGS = $(TEST_CFLAGS) -g -fsanitize=address,undefined -fno-sanitize-recover=all -Iboards/examples/modem
SUITES += $(MODEM_TESTS)
$(call needs,$(MODEM)/test_modem,python3 $(BUILD)/redis-server)
$(call needs,$(MODEM)/conformance $(MODEM)/conformance_simcom,python3)
$(call needs,modem-tests,$(MODEM_TESTS))

$(MODEM_TESTS): $(MODEM_SOURCES) boards/examples/modem/modem.h port/port.h

# A modem that is deaf is restarted after 3 calls, which take 5 s.
$(MODEM)/test_modem: tests/modem/test_modem.c tests/modem/rig.c tests/modem/rig.h $(BUILD)/tests/server/harness.o $(FRAME) \
  $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/fairlock $(BUILD)/redis-server
	@mkdir -p $(@D)
	$(CC) $(MODEM_FLAGS) -DMODEM_CALLS=3U -DFAIRLOCK='"$(BUILD)/fairlock"' -Itests/server -o $@ $(filter %.c %.o,$^) $(filter %.a,$^) $(LDLIBS)

$(MODEM)/test_line: tests/modem/test_line.c tests/check.c tests/check_host.c
	@mkdir -p $(@D)
	$(CC) -Iport/single $(MODEM_FLAGS) -o $@ $(filter %.c,$^)

# A port for one task, so all is compiled for that. With large pieces, because on a busy machine each
# exchange waits for both processes.
$(MODEM)/conformance: tests/modem/conformance.c tests/modem/rig.c tests/modem/rig.h $(CONFORMANCE_FILES) \
  $(addprefix port/posix/,clock.c idle.c) $(SUPPORT) | $(BUILD)/conformance-peer
	@mkdir -p $(@D)
	$(CC) -Iport/single $(CONFORMANCE_FLAGS) $(MODEM_FLAGS) -DMODEM_SEND_SIZE=1024U -DMODEM_RECEIVE_SIZE=1024U -o $@ $(filter %.c,$^) $(SUPPORT) $(LDLIBS)

$(MODEM)/conformance_simcom: $(MODEM)/conformance
	@printf '%s\n' '#!/bin/sh' 'exec $< simcom' >$@
	@chmod +x $@

.PHONY: modem-tests
modem-tests: $(MODEM_TESTS) ## run the transport over a cellular modem, on a simulated one
	@sh tests/tools/run.sh $^
