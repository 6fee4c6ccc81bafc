# SPDX-License-Identifier: Apache-2.0
# Firmware: `make firmware` builds the images of all boards, `make firmware BOARD=mps2-an385` those
# of one.
$(call needs,compiler/arm-none-eabi-gcc,gcc-arm-none-eabi libnewlib-arm-none-eabi)
$(call needs,compiler/riscv64-unknown-elf-gcc,gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf)
$(call needs,$(BUILD)/lwip/src $(BUILD)/bearssl/src $(BUILD)/mbedtls/library,dpkg-dev)
$(call needs,boards,compiler/arm-none-eabi-gcc compiler/riscv64-unknown-elf-gcc qemu-system-arm qemu-system-misc $(BUILD)/lwip/src)
$(call needs,board-demo,boards $(BUILD)/redis-server)
BOARDS := $(patsubst boards/%/board.mk,%,$(wildcard boards/*/board.mk))

# TLS in firmware: BearSSL and Mbed TLS, and the keys to trust, which are those of the tests. For
# boards that have images with TLS.
ifneq ($(filter $(or $(BOARD),$(BOARDS)),$(patsubst boards/%/board.mk,%,$(shell grep -l mbedtls boards/*/board.mk))),)
FIRMWARE_TLS := $(BUILD)/bearssl/src $(BUILD)/mbedtls/library $(BEARSSL_KEYS)/keys.h $(BEARSSL_KEYS)/ca_der.h
$(call needs,firmware,openssl)
endif
$(call needs,firmware,boards)

$(BUILD)/lwip/src: port/lwip/fetch.sh
	sh port/lwip/fetch.sh $(@D)
	@touch $@

$(BUILD)/bearssl/src: port/bearssl/fetch.sh
	sh port/bearssl/fetch.sh $(@D)
	@touch $@

$(BUILD)/mbedtls/library: port/mbedtls/fetch.sh
	sh port/mbedtls/fetch.sh $(@D)
	@touch $@

# A CA for Mbed TLS, which reads the certificate as it is.
$(BEARSSL_KEYS)/ca_der.h: $(BEARSSL_KEYS)/made
	@{ echo 'static const unsigned char CA_DER[] = {'; openssl x509 -in $(@D)/ca.crt -outform DER | od -An -v -tx1 | \
	  sed 's/ \(..\)/0x\1,/g'; echo '};'; } >$@.new && mv $@.new $@

.PHONY: firmware
firmware: $(BUILD)/lwip/src $(FIRMWARE_TLS) ## build the images of all boards, or of BOARD=
	@for board in $(or $(BOARD),$(BOARDS)); do \
	  $(MAKE) --no-print-directory -f boards/common/firmware.mk BOARD=$$board BUILD=$(BUILD) || exit 1; done

# The gateway's end of a serial line.
$(BUILD)/uart-bridge: $(BUILD)/port/uart/bridge.o
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

.PHONY: uart-bridge
uart-bridge: $(BUILD)/uart-bridge ## build the gateway's end of the UART transport

# SCENE=shared: three boards and this host share a limit of two, and one board is switched off.
DEMO_BOARDS = $(if $(filter shared,$(SCENE)),mps2-an385 mps2-an505 riscv-virt,$(or $(BOARD),mps2-an385 riscv-virt))
DEMO_IMAGE = $(if $(filter shared,$(SCENE)),superloop_shared,superloop)

.PHONY: board-demo
board-demo: $(BUILD)/lwip/src $(BUILD)/fairlock $(BUILD)/redis-server ## show the lock on two simulated boards, or on BOARD=; SCENE=shared: three and this host share a limit of two
	+@for board in $(DEMO_BOARDS); do \
	  $(MAKE) --no-print-directory -f boards/common/firmware.mk BOARD=$$board IMAGES=$(DEMO_IMAGE) BUILD=$(BUILD) || exit 1; done
	@sh boards/common/demo.sh $(BUILD) $(filter shared,$(SCENE)) $(DEMO_BOARDS)
