# SPDX-License-Identifier: Apache-2.0
# The examples for hosts: event loops, several slots of a cluster, and C++. They see the library as
# any program of a host's does. Those for firmware are in boards/common/firmware.mk.
LOOPS := $(BUILD)/examples/epoll $(BUILD)/examples/libuv $(BUILD)/examples/pool $(BUILD)/examples/coroutine
ifeq ($(TLS),openssl)
LOOPS += $(BUILD)/examples/epoll_tls $(BUILD)/examples/libuv_tls
endif
$(call needs,$(BUILD)/examples/libuv $(BUILD)/examples/libuv_tls,libuv1-dev)
$(call needs,$(BUILD)/examples/coroutine $(BUILD)/examples/guard,g++)
$(call needs,loops,$(LOOPS))
EXAMPLE_CFLAGS = -std=c11 $(WARNINGS) -I$(BUILD)/include $(CFLAGS)
EXAMPLE_CXXFLAGS = $(filter-out -Wmissing-prototypes,$(WARNINGS)) -I$(BUILD)/include $(CFLAGS)

$(BUILD)/examples/libuv $(BUILD)/examples/libuv_tls: LDLIBS += -luv

$(BUILD)/examples/%: boards/examples/loops/%.c $(BUILD)/liblock.a | $(BUILD)/include/fairlock
	@mkdir -p $(@D)
	$(CC) $(EXAMPLE_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/examples/%_tls: boards/examples/loops/%.c $(BUILD)/liblock.a | $(BUILD)/include/fairlock
	@mkdir -p $(@D)
	$(CC) -DWITH_TLS $(EXAMPLE_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ $(TLS_LIBS) $(LDLIBS)

$(BUILD)/examples/coroutine: boards/examples/loops/coroutine.cc $(BUILD)/liblock.a | $(BUILD)/include/fairlock
	@mkdir -p $(@D)
	$(CXX) -std=c++20 $(EXAMPLE_CXXFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/examples/guard: boards/examples/guard.cc lock/fairlock.hpp $(BUILD)/liblock.a | $(BUILD)/include/fairlock
	@mkdir -p $(@D)
	$(CXX) -std=c++11 $(EXAMPLE_CXXFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter-out %.hpp,$^) $(LDLIBS)

$(BUILD)/examples/slots: boards/examples/cluster/slots.c $(BUILD)/liblock.a | $(BUILD)/include/fairlock
	@mkdir -p $(@D)
	$(CC) $(EXAMPLE_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: loops
loops: $(LOOPS) ## build the examples of a lock in an event loop: epoll, libuv, a pool of threads beside it, coroutines of C++20; with TLS=openssl the first two over TLS, too
