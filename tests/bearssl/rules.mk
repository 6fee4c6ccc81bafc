# SPDX-License-Identifier: Apache-2.0
# TLS by BearSSL on the host, from Debian's library: against a real redis-server, and against a
# server in the same process.
BEARSSL_TEST := $(BUILD)/tests/bearssl/test_bearssl
BEARSSL_KEYS := $(BUILD)/tests/bearssl/keys
SUITES += $(BEARSSL_TEST)
$(call needs,bearssl-library,libbearssl-dev)
$(call needs,$(BEARSSL_KEYS)/made,openssl)
$(call needs,$(BEARSSL_TEST),bearssl-library $(BEARSSL_KEYS)/made $(BUILD)/redis-server)
$(call needs,bearssl,$(BEARSSL_TEST))
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

$(BUILD)/port/bearssl/%.o $(BUILD)/tests/bearssl/%.o: CPPFLAGS += -Iport/bearssl
$(BEARSSL_TEST).o: CPPFLAGS += -I$(BEARSSL_KEYS)
$(BUILD)/tests/bearssl/secure.o: CPPFLAGS += -DKEYS='"$(BEARSSL_KEYS)"'
$(BEARSSL_TEST).o: $(BEARSSL_KEYS)/keys.h
$(PORT_BEARSSL) $(BUILD)/tests/bearssl/peer.o: | bearssl-library

.PHONY: bearssl-library
bearssl-library:
	@sh tests/tools/need.sh $(NEEDS.$@)

$(BEARSSL_TEST): %: %.o $(BUILD)/tests/bearssl/peer.o $(BUILD)/tests/bearssl/secure.o $(PORT_BEARSSL) \
  $(FRAME) $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lbearssl $(LDLIBS)

.PHONY: bearssl
bearssl: $(BEARSSL_TEST) ## test the port of BearSSL on the host alone
	@sh tests/tools/run.sh $<
