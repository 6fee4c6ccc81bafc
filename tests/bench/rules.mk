# SPDX-License-Identifier: Apache-2.0
# The benchmarks: `make bench` prints rows.
BENCH_OBJECTS := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%.o,$(wildcard tests/bench/*.c))
SUITES += tests/bench/decode_cycles.sh
$(call needs,tests/bench/decode_cycles.sh,valgrind)
$(call needs,bench,libhiredis-dev strace openssl-library $(BUILD)/tls/certificates/made $(BUILD)/redis-server tests/bench/decode_cycles.sh)

$(BUILD)/tests/bench/tls.o: CPPFLAGS += -DCERTIFICATES='"$(abspath $(BUILD)/tls/certificates)"'

$(BUILD)/tests/bench/bench: $(BENCH_OBJECTS) $(BUILD)/tests/server/harness.o $(BUILD)/tests/check.o \
  $(BUILD)/port/openssl/openssl.o $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/redis-server $(BUILD)/tls/certificates/made
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lhiredis -lssl -lcrypto -lm $(LDLIBS)

.PHONY: bench
bench: ## measure against the limit: ratios to hiredis and redis-benchmark, bytes, memory
	@$(MAKE) --no-print-directory $(BUILD)/tests/bench/bench
	@$(BUILD)/tests/bench/bench $(ONLY)
	@sh tests/bench/decode_cycles.sh | sed -n 's/^# //p'
