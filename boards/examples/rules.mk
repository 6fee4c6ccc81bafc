# The examples for hosts: event loops, and several slots of a cluster. Those for firmware are in
# boards/common/firmware.mk.
PACKAGES += libuv1-dev
LOOPS := $(BUILD)/examples/epoll $(BUILD)/examples/libuv

$(BUILD)/examples/libuv: LDLIBS += -luv

$(BUILD)/examples/%: boards/examples/loops/%.c $(BUILD)/liblock.a
	@mkdir -p $(@D)
	@sh tests/tools/need.sh libuv1-dev
	$(CC) $(LIB_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/examples/slots: boards/examples/cluster/slots.c $(BUILD)/liblock.a
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: loops
loops: $(LOOPS) ## build the examples of a lock in an event loop: epoll and libuv
