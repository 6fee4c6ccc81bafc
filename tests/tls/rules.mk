# SPDX-License-Identifier: Apache-2.0
# TLS by OpenSSL and by Mbed TLS: the transport against a redis-server with TLS and against a peer of
# the test's own; and the command, which is built with OpenSSL in a folder of its own. Suites that
# both have to pass, records and server, are compiled for each.
TLS_CERTIFICATES := $(BUILD)/tls/certificates
TLS_COMMAND := $(BUILD)/tls/fairlock
TLS_BY_OPENSSL := $(addprefix $(BUILD)/tests/tls/,test_records test_server test_openssl test_loops)
TLS_LOOPS := $(addprefix $(BUILD)/tls/examples/,epoll_tls libuv_tls)
TLS_BY_MBEDTLS := $(addprefix $(BUILD)/tests/tls/mbedtls/,test_records test_server test_mbedtls)
TLS_TESTS := $(TLS_BY_OPENSSL) $(TLS_BY_MBEDTLS)
TLS_PARTS := peer.o faults.o safe.o
SUITES += $(TLS_TESTS) $(wildcard tests/tls/test_*.sh)
$(call needs,mbedtls-library,libmbedtls-dev)
$(call needs,$(TLS_CERTIFICATES)/made,openssl)
$(call needs,$(TLS_TESTS) $(wildcard tests/tls/test_*.sh),openssl-library $(TLS_CERTIFICATES)/made $(BUILD)/redis-server)
$(call needs,$(TLS_BY_MBEDTLS),mbedtls-library)
$(call needs,$(BUILD)/tests/tls/test_loops,$(BUILD)/examples/libuv_tls)
$(call needs,$(wildcard tests/tls/test_*.sh),jq pkgconf)
PORT_MBEDTLS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard port/mbedtls/*.c))

$(TLS_CERTIFICATES)/made: tests/support/certificates.sh
	sh $< $(@D)

$(TLS_COMMAND): FORCE
	@$(MAKE) --no-print-directory -s TLS=openssl BUILD=$(BUILD)/tls all

# After the command, whose library they take.
$(TLS_LOOPS): $(TLS_COMMAND)
	@$(MAKE) --no-print-directory -s TLS=openssl BUILD=$(BUILD)/tls $@

$(BUILD)/tests/tls/test_loops.o: CPPFLAGS += -DEXAMPLES='"$(BUILD)/tls/examples"'
$(BUILD)/tests/tls/test_loops: | $(TLS_LOOPS)

$(wildcard tests/tls/test_*.sh): $(TLS_COMMAND) $(TLS_CERTIFICATES)/made | all $(BUILD)/tls/examples/epoll_tls

$(BUILD)/tests/tls/%.o: CPPFLAGS += -DCERTIFICATES='"$(abspath $(TLS_CERTIFICATES))"'
$(BUILD)/tests/tls/mbedtls/%.o: CPPFLAGS += -DWITH_MBEDTLS -Iport/mbedtls
$(PORT_MBEDTLS): CPPFLAGS += -Iport/mbedtls
$(PORT_MBEDTLS) $(addprefix $(BUILD)/tests/tls/mbedtls/,$(TLS_PARTS) wrap_mbedtls.o): | mbedtls-library

$(BUILD)/tests/tls/mbedtls/%.o: tests/tls/%.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -MMD -MP $(CPPFLAGS) -c -o $@ $<

.PHONY: mbedtls-library
mbedtls-library:
	@sh tests/tools/need.sh $(NEEDS.$@)

$(TLS_BY_OPENSSL): %: %.o $(addprefix $(BUILD)/tests/tls/,$(TLS_PARTS) wrap_openssl.o) $(addprefix $(BUILD)/port/openssl/,openssl.o openssl_url.o)
$(TLS_BY_MBEDTLS): %: %.o $(addprefix $(BUILD)/tests/tls/mbedtls/,$(TLS_PARTS) wrap_mbedtls.o) $(PORT_MBEDTLS)
$(TLS_BY_MBEDTLS): LDLIBS += -lmbedtls -lmbedx509 -lmbedcrypto

$(TLS_TESTS): $(BUILD)/tests/server/harness.o $(FRAME) $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/redis-server $(TLS_CERTIFICATES)/made
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) -lssl -lcrypto $(LDLIBS)

# TLS by BearSSL on the host, from Debian's library: against a real redis-server, and against a
# server in the same process.
BEARSSL_TEST := $(BUILD)/tests/tls/test_bearssl
BEARSSL_KEYS := $(BUILD)/tests/tls/keys
SUITES += $(BEARSSL_TEST)
$(call needs,bearssl-library,libbearssl-dev)
$(call needs,$(BEARSSL_KEYS)/made,openssl)
$(call needs,$(BEARSSL_TEST),bearssl-library $(BEARSSL_KEYS)/made $(BUILD)/redis-server)
PORT_BEARSSL := $(patsubst %.c,$(BUILD)/%.o,$(wildcard port/bearssl/*.c))

$(BEARSSL_KEYS)/made: tests/support/certificates.sh
	sh $< $(@D)

# Certificates and keys as C.
$(BEARSSL_KEYS)/keys.h: port/bearssl/key.sh $(BEARSSL_KEYS)/made
	@for name in ca others server rsa; do \
	  sh $< "$$(echo $$name | tr a-z A-Z)" $(@D)/$$name.crt || exit 1; done >$@.new
	@for name in client stranger; do \
	  sh $< "$$(echo $$name | tr a-z A-Z)" $(@D)/$$name.crt $(@D)/$$name.key || exit 1; done >>$@.new
	@mv $@.new $@

$(BUILD)/port/bearssl/%.o $(BEARSSL_TEST).o $(BUILD)/tests/tls/bearssl_peer.o: CPPFLAGS += -Iport/bearssl
$(BEARSSL_TEST).o: CPPFLAGS += -I$(BEARSSL_KEYS)
$(BUILD)/tests/tls/secure.o: CPPFLAGS += -DKEYS='"$(BEARSSL_KEYS)"'
$(BEARSSL_TEST).o: $(BEARSSL_KEYS)/keys.h
$(PORT_BEARSSL) $(BUILD)/tests/tls/bearssl_peer.o: | bearssl-library

.PHONY: bearssl-library
bearssl-library:
	@sh tests/tools/need.sh $(NEEDS.$@)

$(BEARSSL_TEST): %: %.o $(BUILD)/tests/tls/bearssl_peer.o $(BUILD)/tests/tls/secure.o $(PORT_BEARSSL) \
  $(FRAME) $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lbearssl $(LDLIBS)
