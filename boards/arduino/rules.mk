# SPDX-License-Identifier: Apache-2.0
# The library as Arduino's IDE and PlatformIO take it: build/arduino/Fairlock, and a zip of it.
ARDUINO := $(BUILD)/arduino
ARDUINO_ZIP := $(ARDUINO)/Fairlock-$(VERSION).zip
ARDUINO_CORE := $(CORE) $(wildcard resp/*.h lock/*.h) port/port.h port/port_flash.h port/single/port_types.h port/uart/port_uart.h port/uart/uart.c
ARDUINO_OWN := $(filter-out %/rules.mk,$(wildcard boards/arduino/*.* boards/arduino/examples/*/*))
$(call needs,arduino,$(ARDUINO_ZIP))
$(call needs,$(ARDUINO_ZIP),zip)

$(ARDUINO_ZIP): $(ARDUINO_CORE) $(ARDUINO_OWN) LICENSE boards/arduino/rules.mk
	@sh boards/arduino/package.sh $(ARDUINO) $(VERSION) $(ARDUINO_CORE)

.PHONY: arduino
arduino: $(ARDUINO_ZIP) ## make the library for Arduino and PlatformIO: build/arduino/Fairlock, and a zip of it
	@echo "$(ARDUINO)/Fairlock, $<"
