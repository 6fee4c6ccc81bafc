# The examples for hosts: event loops, several slots of a cluster, and C++. Those for firmware are
# in boards/common/firmware.mk.
PACKAGES += libuv1-dev g++
LOOPS := $(BUILD)/examples/epoll $(BUILD)/examples/libuv $(BUILD)/examples/coroutine
CXX_FLAGS = $(filter-out -Wmissing-prototypes,$(WARNINGS)) $(INCLUDES) $(CFLAGS)

$(BUILD)/examples/libuv: LDLIBS += -luv

$(BUILD)/examples/%: boards/examples/loops/%.c $(BUILD)/liblock.a
	@mkdir -p $(@D)
	@sh tests/tools/need.sh libuv1-dev
	$(CC) $(LIB_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/examples/coroutine: boards/examples/loops/coroutine.cc $(BUILD)/liblock.a
	@mkdir -p $(@D)
	@sh tests/tools/need.sh g++
	$(CXX) -std=c++20 $(CXX_FLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/examples/guard: boards/examples/guard.cc lock/fairlock.hpp $(BUILD)/liblock.a
	@mkdir -p $(@D)
	@sh tests/tools/need.sh g++
	$(CXX) -std=c++11 $(CXX_FLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter-out %.hpp,$^) $(LDLIBS)

$(BUILD)/examples/slots: boards/examples/cluster/slots.c $(BUILD)/liblock.a
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: loops
loops: $(LOOPS) ## build the examples of a lock in an event loop: epoll, libuv, coroutines of C++20
