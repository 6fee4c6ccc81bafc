# SPDX-License-Identifier: Apache-2.0
# Fuzzing. Each fuzz_NAME.c is a suite that runs, with replay.c, the target's committed corpus and
# regressions under ASan and UBSan; `make fuzz` builds the same with clang and libFuzzer instead, in
# a build folder of its own. The corpus is an archive, unpacked beside the programs.
FUZZ := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS := $(FUZZ:%=$(BUILD)/replay/%)
SUITES += $(REPLAYS) tests/fuzz/names.sh
$(call needs,$(addprefix $(BUILD)/replay/,fuzz_openssl fuzz_mbedtls),openssl-library)
$(call needs,$(BUILD)/replay/fuzz_mbedtls,mbedtls-library)
$(call needs,$(BUILD)/replay/fuzz_bearssl,bearssl-library)
$(call needs,fuzz fuzzers corpus,clang libclang-rt-dev $(REPLAYS))

SANITIZE_FUZZ := -g -O1 -fno-omit-frame-pointer -include tests/asserts.h -fsanitize=address,undefined -fno-sanitize-recover=all
REPLAY_MAIN ?= $(BUILD)/replay/tests/fuzz/replay.o
REPLAY_LIBRARY ?= $(BUILD)/replay/liblock.a

$(BUILD)/replay/%: CFLAGS := $(SANITIZE_FUZZ)

$(BUILD)/replay/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -Iboards/fairlock -MMD -MP $(CPPFLAGS) -c -o $@ $<

$(BUILD)/replay/liblock.a: $(CORE:%.c=$(BUILD)/replay/%.o)
	rm -f $@ && $(AR) rcs $@ $^

$(REPLAYS): $(BUILD)/replay/%: $(BUILD)/replay/tests/fuzz/%.o $(REPLAY_MAIN) $(REPLAY_LIBRARY)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(REPLAY_LIBRARY) $(LDLIBS)

$(REPLAYS): $(BUILD)/replay/fuzz_%: | $(BUILD)/replay/corpus/%

$(BUILD)/replay/corpus/%: tests/fuzz/corpus/%.tar.gz
	@rm -rf $@ && mkdir -p $@ && tar -xzf $< -C $@

$(BUILD)/replay/fuzz_engine $(BUILD)/replay/fuzz_client: \
  $(BUILD)/replay/tests/fuzz/witness.o $(BUILD)/replay/tests/fuzz/hostile.o
$(BUILD)/replay/fuzz_command: $(patsubst %,$(BUILD)/replay/boards/fairlock/%.o,options text)
$(addprefix $(BUILD)/replay/fuzz_,command url): $(patsubst %,$(BUILD)/replay/%.o,boards/fairlock/url \
  $(addprefix port/posix/,url socket resolve process clock threads))
$(BUILD)/replay/fuzz_openssl $(BUILD)/replay/fuzz_mbedtls: $(BUILD)/replay/tests/fuzz/tls.o
$(BUILD)/replay/fuzz_openssl: $(BUILD)/replay/port/openssl/openssl.o
$(BUILD)/replay/fuzz_openssl $(BUILD)/replay/fuzz_mbedtls: LDLIBS += -lssl -lcrypto
FUZZ_MBEDTLS := $(patsubst %.c,$(BUILD)/replay/%.o,$(wildcard port/mbedtls/*.c))
$(FUZZ_MBEDTLS) $(BUILD)/replay/tests/fuzz/fuzz_mbedtls.o: CPPFLAGS += -Iport/mbedtls
$(FUZZ_MBEDTLS) $(BUILD)/replay/tests/fuzz/fuzz_mbedtls.o: | mbedtls-library
$(BUILD)/replay/fuzz_mbedtls: $(FUZZ_MBEDTLS)
$(BUILD)/replay/fuzz_mbedtls: LDLIBS += -lmbedtls -lmbedx509 -lmbedcrypto

# TLS: its transport, and a server of its own, with Debian's BearSSL.
FUZZ_TLS := $(patsubst %,$(BUILD)/replay/%.o,tests/tls/bearssl_peer $(basename $(wildcard port/bearssl/*.c)))
$(FUZZ_TLS) $(BUILD)/replay/tests/fuzz/fuzz_bearssl.o: CPPFLAGS += -Iport/bearssl -Itests/tls
$(FUZZ_TLS) $(BUILD)/replay/tests/fuzz/fuzz_bearssl.o: | bearssl-library
$(BUILD)/replay/fuzz_bearssl: $(FUZZ_TLS) $(BUILD)/replay/port/posix/threads.o $(BUILD)/replay/port/posix/process.o
$(BUILD)/replay/fuzz_bearssl: LDLIBS += -lbearssl

# The scripts, against a real server.
HOSTILE_KEYS := $(BUILD)/tests/fuzz/hostile_keys
SUITES += $(HOSTILE_KEYS)
$(call needs,$(HOSTILE_KEYS),$(BUILD)/redis-server)
$(HOSTILE_KEYS): $(HOSTILE_KEYS).o $(BUILD)/tests/server/harness.o $(FRAME) $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LDLIBS)

.PHONY: fuzz fuzzers
fuzz: fuzzers ## fuzz each target for TIME seconds (60), or only TARGET=engine; what it learns and finds is in build/fuzz
	@sh tests/fuzz/fuzz.sh $(BUILD)/fuzz $(or $(TIME),60) $(if $(TARGET),fuzz_$(TARGET),$(FUZZ))

fuzzers:
	@$(MAKE) --no-print-directory -s BUILD=$(BUILD)/fuzz CC=clang REPLAY_MAIN= \
	  CFLAGS="$(SANITIZE_FUZZ) -fsanitize=fuzzer-no-link" LDFLAGS=-fsanitize=fuzzer $(FUZZ:%=$(BUILD)/fuzz/replay/%)

.PHONY: corpus
corpus: fuzzers ## pack tests/fuzz/corpus again, with what make fuzz has learned that reaches more; only TARGET=engine
	@sh tests/fuzz/corpus.sh $(BUILD)/fuzz $(or $(TARGET),$(FUZZ:fuzz_%=%))

# Coverage: the suites that take no real time, and one that does, again, with a build of their own; with ALL=1 those of
# a server, too.
COVERED = $(filter $(BUILD)/tests/unit/% $(BUILD)/replay/% $(BUILD)/tests/sim/% $(BUILD)/tests/server/test_several \
  $(if $(ALL),$(BUILD)/tests/fuzz/% $(BUILD)/tests/server/%),$(SUITES))

$(call needs,coverage,gcc $$(COVERED) $(BUILD)/redis-server)

.PHONY: coverage covered
coverage: ## print which lines and branches of resp/ and lock/ the suites reach; an unexplained gap fails
	@$(MAKE) --no-print-directory covered BUILD=$(BUILD)/coverage CC=gcc CFLAGS="-O0 -g --coverage" \
	  LDFLAGS=--coverage REPLAY_LIBRARY=$(BUILD)/coverage/liblock.a SANITIZER=coverage

covered:
	@$(MAKE) --no-print-directory -s $(PARALLEL) $(COVERED) $(BUILD)/redis-server
	@find $(BUILD) -name '*.gcda' -delete
	@JOBS=$${JOBS:-6} sh tests/tools/run.sh $(COVERED)
	@sh tests/tools/coverage.sh $(BUILD) $(CORE) lock/scripts/hashes.c
