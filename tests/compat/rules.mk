# SPDX-License-Identifier: Apache-2.0
# Releases and other clients in one queue: what each brings, as build.sh makes it.
COMPAT := $(BUILD)/compat
RELEASES := this later strange $(patsubst tests/compat/%/source.tar.gz,%,$(wildcard tests/compat/*/source.tar.gz))
COMPAT_CLIENTS := $(RELEASES:%=$(COMPAT)/%/client)
COMPAT_TESTS := $(wildcard tests/compat/test_*.py)
SUITES += $(COMPAT_TESTS)
$(call needs,$(COMPAT_TESTS),python3 $(BUILD)/redis-server)
$(call needs,compat,$(COMPAT_TESTS))

# What `make test` runs of them: 20 s.
COMPAT_SHORT := "tests/compat/test_peer.py this" "env TIME=2 tests/compat/test_releases.py in_order this+later"

$(COMPAT_CLIENTS): $(COMPAT)/%/client: $(addprefix tests/compat/,build.sh change.sh client.c) $(CORE) \
  $(HEADERS) $(wildcard lock/*.h lock/scripts/* tests/compat/*.sed tests/compat/*/source.tar.gz boards/fairlock/*.[ch])
	sh tests/compat/build.sh $* $(@D)

$(COMPAT_TESTS): | $(COMPAT_CLIENTS) $(BUILD)/redis-server

.PHONY: compat
compat: $(COMPAT_CLIENTS) $(BUILD)/redis-server ## releases and other clients in one queue, and each against the format; CLIENT="program": one of yours
	@$(if $(CLIENT),tests/compat/peer.py -- $(CLIENT),JOBS=1 sh tests/tools/run.sh $(COMPAT_TESTS))

# With Redisson, which tests/interop gets.
COMPAT_REDISSON = $(foreach version,$(REDISSON),"env REDISSON=$(version) tests/compat/test_releases.py")
