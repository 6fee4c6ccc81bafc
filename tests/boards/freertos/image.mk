# SPDX-License-Identifier: Apache-2.0
# The images with FreeRTOS, of the ports to copy and of boards/freertos/main.c:
# make -f tests/boards/freertos/image.mk BOARD=mps2-an385 IMAGES="freertos application"
include boards/common/firmware.mk

KERNEL_SOURCES := $(BUILD)/freertos/kernel
FREERTOS := $(OUT)/freertos
KERNEL_HEADERS := -Itests/boards/freertos -isystem $(KERNEL_SOURCES)/include -isystem $(KERNEL_SOURCES)/portable/GCC/ARM_CM3
FREERTOS_FLAGS = -Itests/boards/freertos/posix -Iport/freertos -Iport/sockets \
  -isystem $(LWIP)/include/compat/posix $(KERNEL_HEADERS) $(FLAGS)

# Nobody notes that FreeRTOS's and lwIP's headers include these.
SETTINGS := $(wildcard tests/boards/freertos/*.h tests/boards/freertos/arch/*.h)

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

# What all images have below them.
SYSTEM := $(patsubst %.c,$(FREERTOS)/%.o,$(SUPPORT) $(addprefix tests/boards/freertos/,system.c sys_arch.c)) \
  $(patsubst %.c,$(FREERTOS)/kernel/%.o,tasks.c queue.c list.c portable/GCC/ARM_CM3/port.c) \
  $(patsubst %.c,$(FREERTOS)/lwip/%.o,$(LWIP_SOURCES) \
  core/dns.c core/udp.c $(addprefix api/,api_lib.c api_msg.c err.c netbuf.c netdb.c sockets.c tcpip.c))

$(OUT)/freertos.elf: $(patsubst %.c,$(FREERTOS)/%.o,$(LIBRARY) port/conformance/conformance.c \
  $(wildcard port/freertos/*.c port/sockets/*.c) $(addprefix tests/boards/freertos/,tasks.c conformance.c)) $(SYSTEM)
	$(link)

# The application, with the library that its page says how to build.
CORE := $(BUILD)/core/$(CC)-freertos/liblock.a

.PHONY: core
$(CORE): core
core:
	@$(MAKE) --no-print-directory -s -f Makefile core THREADS=port/freertos CC=$(CC) BUILD=$(BUILD) CFLAGS="$(CPU) $(KERNEL_HEADERS)"

$(FREERTOS)/boards/freertos/main.o: FLAGS += -DSERVER_ADDRESS='"10.0.2.2"' '-DSERVER_PORT=(uint16_t)board_argument_number(1, 6379)' \
  -include boards/common/board.h

$(OUT)/application.elf: $(addprefix $(FREERTOS)/,boards/freertos/main.o port/freertos/network.o port/lwip/tcp.o) $(SYSTEM) $(CORE)
	$(link)
