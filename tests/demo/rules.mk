# SPDX-License-Identifier: Apache-2.0
# The lock at work, for people (`make demo`) and checked without one.
DEMO := $(BUILD)/tests/demo/demo
DEMO_OBJECTS := $(patsubst %,$(BUILD)/tests/demo/%.o,demo contender server screen timeline verdict)
DEMO_TEST := $(BUILD)/tests/demo/test_verdict
SUITES += $(DEMO_TEST) tests/demo/check.sh
$(call needs,demo demo-picture,$(firstword $(CC))=gcc $(firstword $(CC))=libc6-dev)
$(call needs,demo,$(if $(URL),,$(BUILD)/redis-server))
$(call needs,demo-picture tests/demo/check.sh,$(BUILD)/redis-server)
$(call needs,demo-picture tests/demo/check.sh,libxml2-utils)
$(call needs,demo-picture,util-linux hostname)
export BUILD

$(DEMO): $(DEMO_OBJECTS) $(BUILD)/tests/svg.o $(SUPPORT) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(DEMO_TEST): $(DEMO_TEST).o $(BUILD)/tests/demo/verdict.o $(FRAME) $(SUPPORT)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

tests/demo/check.sh: $(DEMO) $(DEMO)-failover $(BUILD)/redis-server

$(BUILD)/tests/demo/failover.o: CPPFLAGS += -Itests/server

$(DEMO)-failover: $(BUILD)/tests/demo/failover.o $(patsubst %,$(BUILD)/tests/failover/%.o,cluster net rig) $(BUILD)/tests/server/harness.o \
  $(BUILD)/tests/check.o $(SUPPORT) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# SCENE=shared: with readers who share the lock, three at most, and a writer. SCENE=failover: on a master
# with replicas and Sentinels, and the master is killed in the middle. SCENE=languages and history are pictures alone.
$(if $(filter-out shared failover history languages,$(SCENE)),$(error SCENE=$(SCENE) is not known: shared, failover, history or languages))

.PHONY: demo
demo: ## see the lock at work: eight contenders, two killed; SCENE=shared: readers and a writer; SCENE=failover: Sentinels, whose master is killed; URL=redis://... for a server of yours
	@$(if $(filter history languages,$(SCENE)),$(error SCENE=$(SCENE) is for make demo-picture))test -x $(DEMO) || echo "building ..."
	@$(MAKE) --no-print-directory -s $(DEMO) $(if $(filter failover,$(SCENE)),$(DEMO)-failover) $(if $(URL),,$(BUILD)/redis-server)
	@$(if $(filter failover,$(SCENE)),$(DEMO)-failover $(DEMO),$(DEMO) $(if $(filter shared,$(SCENE)),--shared) $(if $(URL),--url '$(URL)',--server $(BUILD)/redis-server))

# A committed picture changes only if the judge finds nothing wrong in what it shows.
PICTURE = $(or $(filter shared history languages,$(SCENE)),timeline)
PICTURE_NEEDS = $(if $(filter languages,$(SCENE)),$(LANGUAGES_IN_LINE),$(if $(filter history,$(SCENE)),all,$(DEMO)))
PICTURE_DRAWN = $(if $(filter languages,$(SCENE)),tests/languages/picture.py,$(if $(filter history,$(SCENE)),sh tests/demo/history.sh,\
  $(DEMO) --server $(BUILD)/redis-server --pace 900 $(if $(filter shared,$(SCENE)),--shared) --svg))

.PHONY: demo-picture
demo-picture: ## draw tests/demo/timeline.svg again, from a demo of 12 seconds; SCENE=shared, history or languages: that one
	@$(MAKE) --no-print-directory -s $(PICTURE_NEEDS) $(BUILD)/redis-server
	@$(PICTURE_DRAWN) $(BUILD)/$(PICTURE).svg
	@xmllint --nonet --noout $(BUILD)/$(PICTURE).svg
	@cp $(BUILD)/$(PICTURE).svg $(if $(filter languages,$(SCENE)),boards,tests/demo)/$(PICTURE).svg
