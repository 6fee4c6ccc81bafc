# SPDX-License-Identifier: Apache-2.0
# Servers that move, real ones: Sentinel, Cluster, split brain. Each test_*.c is a suite.
FAILOVER_TESTS := $(patsubst tests/failover/%.c,$(BUILD)/tests/failover/%,$(wildcard tests/failover/test_*.c))
FAILOVER_OBJECTS := $(patsubst %,$(BUILD)/tests/failover/%.o,cluster contest net rig scene sender)
SUITES += $(FAILOVER_TESTS)
$(call needs,failover-soak $(FAILOVER_TESTS),$(BUILD)/redis-server)

$(FAILOVER_OBJECTS) $(FAILOVER_TESTS:=.o): CPPFLAGS += -Itests/server
$(BUILD)/tests/failover/rig.o: CPPFLAGS += -DREDIS_SERVER='"$(BUILD)/redis-server"'

$(BUILD)/tests/failover/test_cluster.o: CPPFLAGS += -DEXAMPLES='"$(BUILD)/examples"'
$(BUILD)/tests/failover/test_cluster: | $(BUILD)/examples/slots

$(BUILD)/tests/failover/test_url.o: CPPFLAGS += -DEXAMPLES='"$(BUILD)/examples"' -DTLS_EXAMPLES='"$(BUILD)/tls/examples"' \
  -DCERTIFICATES='"$(abspath $(BUILD)/tls/certificates)"'
$(BUILD)/tests/failover/test_url: | $(BUILD)/examples/epoll $(BUILD)/tls/examples/epoll_tls $(BUILD)/tls/certificates/made
$(call needs,$(BUILD)/tests/failover/test_url,openssl-library $(BUILD)/tls/certificates/made)

$(FAILOVER_TESTS): %: %.o $(FAILOVER_OBJECTS) $(BUILD)/tests/server/harness.o \
  $(FRAME) $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

MOVES_TEST := $(BUILD)/tests/failover/test_moves

.PHONY: failover-soak
failover-soak: $(MOVES_TEST) ## kill, freeze and demote masters of Sentinels and clusters under readers and writers for TIME=seconds (600), and check; SEED=n
	@TIME=$(or $(TIME),600) SEED=$(SEED) $<
