# The image with FreeRTOS: make -f tests/qemu/freertos/image.mk BOARD=mps2-an385 IMAGES=freertos
include boards/common/firmware.mk

KERNEL_SOURCES := $(BUILD)/freertos/kernel
FREERTOS := $(OUT)/freertos
FREERTOS_FLAGS = -Itests/qemu/freertos -Itests/qemu/freertos/posix -Iport/freertos -Iport/sockets \
  -isystem $(LWIP)/include/compat/posix \
  -isystem $(KERNEL_SOURCES)/include -isystem $(KERNEL_SOURCES)/portable/GCC/ARM_CM3 $(FLAGS)

# Nobody notes that FreeRTOS's and lwIP's headers include these.
SETTINGS := $(wildcard tests/qemu/freertos/*.h tests/qemu/freertos/arch/*.h)

$(FREERTOS)/%.o: %.c $(SETTINGS)
	@mkdir -p $(@D)
	@$(CC) $(FREERTOS_FLAGS) -MMD -MP -c -o $@ $<

# Other people's sources, with their own idea of warnings.
$(FREERTOS)/kernel/%.o: $(KERNEL_SOURCES)/%.c $(SETTINGS)
	@mkdir -p $(@D)
	@$(CC) $(FREERTOS_FLAGS) -w -c -o $@ $<

$(FREERTOS)/lwip/%.o: $(LWIP)/%.c $(SETTINGS)
	@mkdir -p $(@D)
	@$(CC) $(FREERTOS_FLAGS) -w -c -o $@ $<

$(OUT)/freertos.elf: $(patsubst %.c,$(FREERTOS)/%.o,$(LIBRARY) $(SUPPORT) port/conformance/conformance.c \
  $(wildcard port/freertos/*.c port/sockets/*.c tests/qemu/freertos/*.c)) \
  $(patsubst %.c,$(FREERTOS)/kernel/%.o,tasks.c queue.c list.c portable/GCC/ARM_CM3/port.c) \
  $(patsubst %.c,$(FREERTOS)/lwip/%.o,$(LWIP_SOURCES) \
  core/dns.c core/udp.c $(addprefix api/,api_lib.c api_msg.c err.c netbuf.c netdb.c sockets.c tcpip.c))
	$(link)
