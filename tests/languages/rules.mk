# SPDX-License-Identifier: Apache-2.0
# The client for other languages, boards/service, and those languages.
SERVICE_TESTS := $(patsubst tests/languages/%.c,$(BUILD)/tests/languages/%,$(wildcard tests/languages/test_service*.c))
SUITES += $(SERVICE_TESTS)
SERVICE_BENCH := $(BUILD)/tests/languages/bench_service
$(call needs,bench-service $(SERVICE_TESTS),$(BUILD)/redis-server)

$(SERVICE_TESTS:=.o) $(SERVICE_BENCH).o $(BUILD)/tests/languages/scene.o: CPPFLAGS += -Iboards/service -Itests/server

$(SERVICE_BENCH) $(filter-out %_tls,$(SERVICE_TESTS)): $(BUILD)/boards/service/no_tls.o

# It counts who waits for events, and who receives.
$(BUILD)/tests/languages/test_service: override LDFLAGS += -Wl,--wrap=poll,--wrap=recv

# With OpenSSL, whatever the library has.
$(BUILD)/tests/languages/test_service_tls.o: CPPFLAGS += -DCERTIFICATES='"$(abspath $(BUILD)/tls/certificates)"'
$(BUILD)/tests/languages/test_service_tls: LDLIBS += -lssl -lcrypto
$(BUILD)/tests/languages/test_service_tls: $(addprefix $(BUILD)/port/openssl/,openssl.o openssl_url.o) | $(BUILD)/tls/certificates/made
$(call needs,$(BUILD)/tests/languages/test_service_tls,openssl-library $(BUILD)/tls/certificates/made)

$(BUILD)/tests/languages/test_service_moves.o: CPPFLAGS += -Itests/failover
$(BUILD)/tests/languages/test_service_moves: $(patsubst %,$(BUILD)/tests/failover/%.o,cluster net rig)

$(SERVICE_BENCH) $(SERVICE_TESTS): %: %.o $(BUILD)/tests/languages/scene.o $(BUILD)/boards/service/service.o $(BUILD)/tests/server/harness.o $(FRAME) $(SUPPORT) \
  $(BUILD)/liblock.a | $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

.PHONY: bench-service
bench-service: $(SERVICE_BENCH) ## measure an acquire and a release by the client for other languages beside fairlock.h, in one run
	@$<

# The page, by what make builds.
SERVICE_PAGE_TEST := tests/languages/test_service_page.sh
SUITES += $(SERVICE_PAGE_TEST)
$(call needs,$(SERVICE_PAGE_TEST),$(BUILD)/redis-server binutils)
$(SERVICE_PAGE_TEST): | $(BUILD)/service/libfls.a $(BUILD)/liblock.a $(BUILD)/redis-server

# All languages beside all releases, and in one line with them: build/compat/LANGUAGE/client, as those of releases.
LANGUAGES := go node python rust
LANGUAGE_CLIENTS := $(LANGUAGES:%=$(COMPAT)/%/client)
LANGUAGES_TEST := tests/languages/test_languages.sh tests/languages/test_picture.sh
SUITES += $(LANGUAGES_TEST)
$(call needs,$(LANGUAGES_TEST),python3 $(LANGUAGE_CLIENTS) $(BUILD)/redis-server)
$(call needs,$(COMPAT)/node/client,npm-client $(BUILD)/node/fairlock-$(VERSION).tgz)
$(call needs,$(COMPAT)/python/client,$(BUILD)/tests/python/test_use)
$(call needs,$(COMPAT)/rust/client,tests/rust/test_crate.sh)
$(LANGUAGES_TEST): | $(LANGUAGE_CLIENTS) $(COMPAT_CLIENTS) $(JUDGE) $(BUILD)/redis-server

# The picture of boards/README.md.
LANGUAGES_IN_LINE := $(LANGUAGE_CLIENTS) $(COMPAT)/this/client
$(call needs,tests/languages/test_picture.sh,libxml2-utils)
$(if $(filter languages,$(SCENE)),$(call needs,demo-picture,tests/languages/test_picture.sh))

# And with Redisson, which tests/interop gets.
$(call needs,interop,$(LANGUAGE_CLIENTS))
interop: | $(LANGUAGE_CLIENTS) $(JUDGE)

$(COMPAT)/node/client: | $(BUILD)/node/fairlock-$(VERSION).tgz
$(COMPAT)/python/client: | $(BUILD)/python/used/ready
$(COMPAT)/rust/client: | $(BUILD)/rust/target/debug/examples/driver
$(COMPAT)/node/client: RUNS = node boards/node/compat.mjs
$(COMPAT)/python/client: RUNS = $(BUILD)/python/used/bin/python tests/python/compat.py
$(COMPAT)/rust/client: RUNS = $(BUILD)/rust/target/debug/examples/driver
$(addprefix $(COMPAT)/,node/client python/client rust/client): tests/languages/rules.mk
	@mkdir -p $(@D)
	@printf '%s\n' '#!/bin/sh' 'exec $(RUNS) "$$@"' >$@
	@chmod +x $@
