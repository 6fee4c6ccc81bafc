# TLS by OpenSSL: the transport against a redis-server with TLS and against a peer of the test's
# own, and the command, which is built with TLS in a folder of its own.
TLS_TESTS := $(patsubst tests/tls/%.c,$(BUILD)/tests/tls/%,$(wildcard tests/tls/test_*.c))
TLS_CERTIFICATES := $(BUILD)/tls/certificates
TLS_COMMAND := $(BUILD)/tls/fairlock
PACKAGES_TLS := libssl-dev openssl redis-tools
SUITES += $(TLS_TESTS) $(wildcard tests/tls/test_*.sh)
PACKAGES += $(PACKAGES_TLS)

$(TLS_CERTIFICATES)/made: tests/support/certificates.sh
	@sh tests/tools/need.sh openssl
	sh $< $(@D)

$(TLS_COMMAND): FORCE
	@$(MAKE) --no-print-directory -s TLS=openssl BUILD=$(BUILD)/tls all

$(wildcard tests/tls/test_*.sh): $(TLS_COMMAND) $(TLS_CERTIFICATES)/made

$(BUILD)/tests/tls/%.o: CPPFLAGS += -DCERTIFICATES='"$(abspath $(TLS_CERTIFICATES))"'

$(TLS_TESTS): %: %.o $(addprefix $(BUILD)/tests/tls/,peer.o faults.o) $(BUILD)/port/openssl/openssl.o \
  $(BUILD)/tests/server/harness.o $(FRAME) $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/redis-server $(TLS_CERTIFICATES)/made
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) -lssl -lcrypto $(LDLIBS)

.PHONY: tls-tests
tls-tests: ## run the suites of TLS alone
	@sh tests/tools/need.sh $(PACKAGES_TLS)
	@$(MAKE) --no-print-directory $(TLS_TESTS) $(BUILD)/redis-server $(wildcard tests/tls/test_*.sh)
	@sh tests/tools/run.sh $(TLS_TESTS) $(wildcard tests/tls/test_*.sh)
