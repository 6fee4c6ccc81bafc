# SPDX-License-Identifier: Apache-2.0
# The conformance test of ports, on ours, and on a port with mistakes planted. On boards: tests/qemu.
CONFORMANCE := $(BUILD)/tests/conformance
CONFORMANCE_TESTS := $(addprefix $(CONFORMANCE)/,posix single sockets tls mbedtls faulty)
CONFORMANCE_FILES := port/conformance/conformance.c tests/conformance/peer.c
CONFORMANCE_FLAGS = $(TEST_CFLAGS) -Iport/conformance -Itests/conformance $(PEER)
PEER := -DPEER='"$(BUILD)/conformance-peer"'
SUITES += $(CONFORMANCE_TESTS)
$(call needs,$(addprefix $(CONFORMANCE)/,tls mbedtls),openssl-library $(BUILD)/tls/certificates/made)
$(call needs,$(CONFORMANCE)/mbedtls,mbedtls-library)
$(call needs,conformance,$(CONFORMANCE_TESTS))

# The other end, on a host.
$(BUILD)/conformance-peer: $(BUILD)/port/conformance/peer.o
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

.PHONY: conformance-peer
conformance-peer: $(BUILD)/conformance-peer ## build the other end of a port under test, for port/conformance

$(CONFORMANCE)/peer.o: CPPFLAGS += $(PEER)

# port/single and the faulty port have types of their own, so all is compiled for each.
$(CONFORMANCE)/posix: tests/conformance/host.c $(wildcard port/posix/*.c)
$(CONFORMANCE)/single: tests/conformance/host.c $(addprefix port/posix/,socket.c resolve.c process.c clock.c idle.c)
$(CONFORMANCE)/single: TYPES := -Iport/single
$(CONFORMANCE)/sockets: tests/conformance/host.c port/sockets/sockets.c $(addprefix port/posix/,clock.c threads.c process.c)
$(CONFORMANCE)/sockets: TYPES := -Itests/server/sockets -Iport/sockets
$(CONFORMANCE)/tls: tests/conformance/tls.c tests/tls/wrap_openssl.c port/openssl/openssl.c $(wildcard port/posix/*.c) | openssl-library $(BUILD)/tls/certificates/made
$(CONFORMANCE)/mbedtls: tests/conformance/tls.c tests/tls/wrap_mbedtls.c $(wildcard port/mbedtls/*.c port/posix/*.c) \
  | mbedtls-library openssl-library $(BUILD)/tls/certificates/made
$(CONFORMANCE)/mbedtls: TYPES = -DCERTIFICATES='"$(abspath $(BUILD)/tls/certificates)"' -DWITH_MBEDTLS -Iport/mbedtls
$(CONFORMANCE)/mbedtls: LDLIBS += -lmbedtls -lmbedx509 -lmbedcrypto -lssl -lcrypto
$(CONFORMANCE)/tls: TYPES = -DCERTIFICATES='"$(abspath $(BUILD)/tls/certificates)"'
$(CONFORMANCE)/tls: LDLIBS += -lssl -lcrypto
$(CONFORMANCE)/faulty: tests/conformance/faulty.c
$(CONFORMANCE)/faulty: TYPES := -Itests/conformance/faulty

$(CONFORMANCE_TESTS): $(CONFORMANCE_FILES) $(SUPPORT) $(wildcard port/conformance/*.h port/*.h tests/conformance/*.h) \
  | $(BUILD)/conformance-peer
	@mkdir -p $(@D)
	$(CC) $(TYPES) $(CONFORMANCE_FLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(SUPPORT) $(LDLIBS)

.PHONY: conformance
conformance: $(CONFORMANCE_TESTS) ## run the conformance test on the ports of hosts, and on a faulty one
	@sh tests/tools/run.sh $(CONFORMANCE_TESTS)
