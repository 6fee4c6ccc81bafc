# SPDX-License-Identifier: Apache-2.0
# The simulator: thousands of engines, one server and a network in one process, in virtual time,
# from one seed.
SIM_SOURCES := $(filter-out tests/sim/test_%,$(wildcard tests/sim/*.c))
SIM_OBJECTS := $(SIM_SOURCES:%.c=$(BUILD)/%.o) $(BUILD)/tests/sim/releases.o
SIM_LIBS := -llua5.1 -lm
SIM_PARTS := $(filter-out $(BUILD)/tests/sim/main.o,$(SIM_OBJECTS)) # without a program around them
SOAK_TEST := tests/sim/test_soak.sh
SUITES += $(BUILD)/tests/sim/sim $(BUILD)/tests/sim/one_task $(BUILD)/tests/sim/test_differential $(BUILD)/tests/sim/test_sweep $(SOAK_TEST)
$(call needs,sim soak $(SOAK_TEST) $(addprefix $(BUILD)/tests/sim/,sim one_task test_differential test_sweep),liblua5.1-0-dev)
$(SOAK_TEST): | $(BUILD)/tests/sim/sim
$(call needs,$(BUILD)/tests/sim/test_differential,$(BUILD)/redis-server)

$(BUILD)/tests/sim/%.o: CPPFLAGS += -I/usr/include/lua5.1 -DSIM_SEEDS=$(if $(SANITIZER),8,60)

# The scripts of other releases: a kept one, and an invented later one.
OTHER_RELEASES := $(BUILD)/tests/sim/releases
KEPT_RELEASE := tests/interop/1.0.0-rc1/source.tar.gz
$(BUILD)/tests/sim/releases.c: tests/sim/releases.sh $(addprefix tests/interop/,change.sh later.sed) $(KEPT_RELEASE) $(wildcard lock/scripts/*.lua)
	@rm -rf $(OTHER_RELEASES) && mkdir -p $(addprefix $(OTHER_RELEASES)/,kept later/lock)
	tar -xzf $(KEPT_RELEASE) -C $(OTHER_RELEASES)/kept
	cp -R lock/scripts $(OTHER_RELEASES)/later/lock
	sh tests/interop/change.sh later $(OTHER_RELEASES)/later
	sh tests/sim/releases.sh $(OTHER_RELEASES)/kept/lock/scripts $(OTHER_RELEASES)/later/lock/scripts > $@.new
	mv $@.new $@

$(BUILD)/tests/sim/releases.o: $(BUILD)/tests/sim/releases.c
	$(CC) $(LIB_CFLAGS) -Itests/sim $(CPPFLAGS) -c -o $@ $<

$(BUILD)/tests/sim/sim: $(SIM_OBJECTS) $(BUILD)/liblock.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(SIM_LIBS) $(LDLIBS)

# The same worlds with the engine of a program with one task (port/single), as firmware has it: another
# schedule.
ONE_TASK_CORE := $(patsubst %.c,$(BUILD)/one_task/%.o,$(filter-out lock/client.c lock/several.c,$(CORE)))
ONE_TASK_OBJECTS := $(SIM_SOURCES:%.c=$(BUILD)/one_task/%.o) $(ONE_TASK_CORE)
$(BUILD)/tests/unit/test_one_task $(ONE_TASK_UNIT): $(ONE_TASK_CORE)
$(ONE_TASK_OBJECTS): INCLUDES := -Iresp -Iport -Iport/single -Ilock
$(ONE_TASK_OBJECTS): CPPFLAGS += -I/usr/include/lua5.1 -DSIM_SEEDS=20

$(BUILD)/one_task/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) -MMD -MP $(CPPFLAGS) -c -o $@ $<

$(BUILD)/tests/sim/one_task: $(ONE_TASK_OBJECTS) $(BUILD)/tests/sim/releases.o
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(SIM_LIBS) $(LDLIBS)

DIFFERENTIAL := $(BUILD)/tests/sim/test_differential
$(DIFFERENTIAL).o: CPPFLAGS += -Itests/server

$(DIFFERENTIAL): $(DIFFERENTIAL).o $(BUILD)/tests/server/dialect.o $(SIM_PARTS) $(FRAME) $(SUPPORT) $(BUILD)/liblock.a | $(BUILD)/redis-server
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(SIM_LIBS) $(LDLIBS)

# The sweep uses port/single, and the client layer is compiled for that.
SWEEP_PARTS := $(patsubst %,$(BUILD)/tests/sim/%.o,test_sweep sweep_client) \
  $(patsubst %,$(BUILD)/one_task/tests/sim/%.o,store redis roles commands tracking script sha1)
$(patsubst %,$(BUILD)/tests/sim/%.o,test_sweep sweep_client): INCLUDES := -Iresp -Iport -Iport/single -Ilock

$(BUILD)/tests/sim/sweep_client.o: lock/client.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) -MMD -MP $(CPPFLAGS) -c -o $@ $(filter %.c,$^)

$(BUILD)/tests/sim/test_sweep: $(SWEEP_PARTS) $(FRAME) $(ONE_TASK_CORE)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(SIM_LIBS) $(LDLIBS)

.PHONY: sim
sim: $(BUILD)/tests/sim/sim ## simulate the world of SEED=n; STEP=m shows what happens from that step on
	@$(BUILD)/tests/sim/sim $(if $(SEED),seed $(SEED) $(STEP))

.PHONY: soak
soak: $(BUILD)/tests/sim/sim ## simulate new worlds, or those from SEED=n on, for TIME=seconds (60), or HOURS=client-hours, and check; the seeds repeat the latter
	@$(BUILD)/tests/sim/sim $(if $(HOURS),hours $(HOURS),soak $(or $(TIME),60)) $(SEED)

$(BUILD)/tests/sim/sim.a: $(SIM_OBJECTS)
	rm -f $@ && $(AR) rcs $@ $^
