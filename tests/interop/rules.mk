# SPDX-License-Identifier: Apache-2.0
# Releases and other clients in one queue: what each brings, as build.sh makes it.
COMPAT := $(BUILD)/compat
RELEASES := this later strange $(patsubst tests/interop/%/source.tar.gz,%,$(wildcard tests/interop/*/source.tar.gz))
COMPAT_CLIENTS := $(RELEASES:%=$(COMPAT)/%/client)
COMPAT_TESTS := $(wildcard tests/interop/test_*.py)
SUITES += $(COMPAT_TESTS)
$(call needs,$(COMPAT_TESTS),python3 $(BUILD)/redis-server)
$(call needs,compat,$(COMPAT_TESTS))

# What `make test` runs of them: 20 s.
COMPAT_SHORT := "tests/interop/test_peer.py this" "env TIME=2 tests/interop/test_releases.py in_order this+later"

$(COMPAT_CLIENTS): $(COMPAT)/%/client: $(addprefix tests/interop/,build.sh change.sh client.c) $(CORE) \
  $(HEADERS) $(wildcard lock/*.h lock/scripts/* tests/interop/*.sed tests/interop/*/source.tar.gz boards/fairlock/*.[ch])
	sh tests/interop/build.sh $* $(@D)

$(COMPAT_TESTS): | $(COMPAT_CLIENTS) $(JUDGE) $(BUILD)/redis-server

# With TIME, the run of all of them with faults, and with Redisson.
$(call needs,compat,$(if $(TIME),interop/redisson))

.PHONY: compat
compat: $(COMPAT_CLIENTS) $(JUDGE) $(BUILD)/redis-server ## releases and other clients in one queue, and each against the format; CLIENT="program": one of yours; TIME=3600: releases and Redisson while all of them and the server fail; SEED=n
ifdef TIME
	@$(MAKE) --no-print-directory $(REDISSON_READY)
	@TIME=$(TIME) REDISSON="$(REDISSON)" BESIDE="$(if $(CLIENT),client $(CLIENT))" tests/interop/test_mixed.py
else
	@$(if $(CLIENT),tests/interop/peer.py -- $(CLIENT),JOBS=1 sh tests/tools/run.sh $(COMPAT_TESTS))
endif

# With Redisson, which tests/interop gets.
COMPAT_REDISSON = $(foreach version,$(REDISSON),"env REDISSON=$(version) tests/interop/test_releases.py")

# Interoperation with Redisson, of the clients in other languages, too. Not part of `make test-all`: it needs a JDK,
# Maven and Maven Central.

REDISSON ?= 3.17.7 4.7.0
INTEROP := $(BUILD)/tests/interop
INTEROP_LAB := $(INTEROP)/lab.o $(SUPPORT)
INTEROP_PROGRAMS := $(INTEROP)/driver $(INTEROP)/mixed $(INTEROP)/differential $(INTEROP)/in_cluster
REDISSON_READY := $(REDISSON:%=$(BUILD)/interop/%/ready)
export BUILD

$(call needs,interop/redisson,default-jdk-headless maven)
$(call needs,interop,interop/redisson python3 $(BUILD)/redis-server)

$(INTEROP)/driver: $(INTEROP)/driver.o $(INTEROP_LAB) $(BUILD)/liblock.a
$(INTEROP)/mixed: $(INTEROP)/mixed.o $(INTEROP)/mixed_shared.o $(BUILD)/tests/check.o $(INTEROP_LAB)
$(INTEROP)/differential: $(INTEROP)/differential.o $(BUILD)/tests/check.o $(INTEROP_LAB) $(BUILD)/liblock.a
# The cluster is that of the tests of fail-over.
$(INTEROP)/in_cluster.o: CPPFLAGS += -Itests/server
$(INTEROP)/in_cluster: $(INTEROP)/in_cluster.o $(BUILD)/tests/check.o $(FAILOVER_OBJECTS) \
  $(BUILD)/tests/server/harness.o $(INTEROP_LAB) $(BUILD)/liblock.a
$(INTEROP_PROGRAMS):
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/interop/%/ready: tests/interop/pom.xml tests/interop/java/Driver.java
	mvn -q -B -Dstyle.color=never -f tests/interop/pom.xml -Dredisson.version=$* -Doutput=$(abspath $(BUILD))/interop/$* compile
	@touch $@

.PHONY: interop
interop: $(INTEROP_PROGRAMS) $(REDISSON_READY) $(COMPAT_CLIENTS) $(BUILD)/fairlock $(BUILD)/redis-server ## test together with Redisson, from Maven Central
	@REDISSON="$(REDISSON)" JOBS=$${JOBS:-4} sh tests/tools/run.sh tests/interop/test_java.sh $(foreach version,$(REDISSON),"$(INTEROP)/mixed $(version)" "$(INTEROP)/differential $(version)" "$(INTEROP)/in_cluster $(version)") \
	  $(COMPAT_REDISSON) tests/languages/mixed.sh
