# SPDX-License-Identifier: Apache-2.0
# Interoperation with Redisson. Not part of `make test-all`: it needs a JDK, Maven and Maven Central.

REDISSON ?= 3.17.7 4.7.0
INTEROP := $(BUILD)/tests/interop
INTEROP_LAB := $(INTEROP)/lab.o $(SUPPORT)
INTEROP_PROGRAMS := $(INTEROP)/driver $(INTEROP)/mixed $(INTEROP)/differential $(INTEROP)/in_cluster $(INTEROP)/bench
REDISSON_READY := $(REDISSON:%=$(BUILD)/interop/%/ready)
export BUILD

$(call needs,interop/redisson,default-jdk-headless maven)
$(call needs,interop bench-redisson,interop/redisson python3 $(BUILD)/redis-server)

$(INTEROP)/driver: $(INTEROP)/driver.o $(INTEROP_LAB) $(BUILD)/liblock.a
$(INTEROP)/mixed: $(INTEROP)/mixed.o $(INTEROP)/mixed_shared.o $(BUILD)/tests/check.o $(INTEROP_LAB)
$(INTEROP)/differential: $(INTEROP)/differential.o $(BUILD)/tests/check.o $(INTEROP_LAB) $(BUILD)/liblock.a
$(INTEROP)/bench: $(INTEROP)/bench.o $(INTEROP_LAB) $(BUILD)/liblock.a
# The cluster is that of the tests of fail-over.
$(INTEROP)/in_cluster.o: CPPFLAGS += -Itests/server
$(INTEROP)/in_cluster: $(INTEROP)/in_cluster.o $(BUILD)/tests/check.o $(FAILOVER_OBJECTS) \
  $(BUILD)/tests/server/harness.o $(BUILD)/tests/chaos/history.o $(INTEROP_LAB) $(BUILD)/liblock.a
$(INTEROP_PROGRAMS):
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/interop/%/ready: tests/interop/pom.xml tests/interop/java/Driver.java
	mvn -q -B -Dstyle.color=never -f tests/interop/pom.xml -Dredisson.version=$* -Doutput=$(abspath $(BUILD))/interop/$* compile
	@touch $@

.PHONY: interop
interop: $(INTEROP_PROGRAMS) $(REDISSON_READY) $(COMPAT_CLIENTS) $(BUILD)/fairlock $(BUILD)/redis-server ## test together with Redisson, from Maven Central
	@REDISSON="$(REDISSON)" JOBS=$${JOBS:-4} sh tests/tools/run.sh tests/interop/test_java.sh $(foreach version,$(REDISSON),"$(INTEROP)/mixed $(version)" "$(INTEROP)/differential $(version)" "$(INTEROP)/in_cluster $(version)") \
	  $(COMPAT_REDISSON)

# An hour, or TIME seconds: tests/compat has the releases, and a short run without Redisson.
$(call needs,compat-hour,interop/redisson python3 $(BUILD)/redis-server)

.PHONY: compat-hour
compat-hour: $(REDISSON_READY) $(COMPAT_CLIENTS) $(BUILD)/redis-server ## releases and Redisson in one queue while all of them and the server fail, for TIME=3600 seconds; SEED=n
	@TIME=$(or $(TIME),3600) REDISSON="$(REDISSON)" tests/compat/test_mixed.py

.PHONY: bench-redisson
bench-redisson: $(INTEROP_PROGRAMS) $(REDISSON_READY) $(BUILD)/redis-server ## measure side by side with Redisson
	@$(INTEROP)/bench $(REDISSON)
