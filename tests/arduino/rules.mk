# SPDX-License-Identifier: Apache-2.0
# The library for Arduino, from its package alone, on stand-ins of our own for ArduinoCore-API's
# classes: its rules and bytes, its sketches, the class against a real server, and port/conformance
# through a Client.
ARDUINO_MADE := $(BUILD)/arduino/Fairlock-$(VERSION).zip
ARDUINO_PACKAGE_TEST := tests/arduino/test_package.sh
ARDUINO_CLASS_TEST := tests/arduino/test_class.sh
ARDUINO_CONFORMANCE := $(BUILD)/tests/arduino/conformance
ARDUINO_TESTS := $(ARDUINO_PACKAGE_TEST) $(ARDUINO_CLASS_TEST) $(ARDUINO_CONFORMANCE)
SUITES += $(ARDUINO_TESTS)
$(call needs,$(ARDUINO_PACKAGE_TEST),clang g++ python3 unzip $(ARDUINO_MADE) $(BUILD)/redis-server)
$(call needs,$(ARDUINO_CLASS_TEST),clang g++ $(ARDUINO_MADE) $(BUILD)/redis-server)
$(call needs,$(ARDUINO_CONFORMANCE),g++ $(ARDUINO_MADE))
$(call needs,arduino-tests,$(ARDUINO_TESTS))
$(ARDUINO_PACKAGE_TEST) $(ARDUINO_CLASS_TEST): | $(ARDUINO_MADE) $(BUILD)/fairlock $(BUILD)/redis-server

ARDUINO_SOURCE := $(BUILD)/arduino/Fairlock/src
ARDUINO_OBJECTS := $(patsubst %.c,$(BUILD)/tests/arduino/%.o,$(notdir $(CORE)) conformance_rules.c peer.c)

$(BUILD)/tests/arduino/%.o: $(ARDUINO_MADE)
	@mkdir -p $(@D)
	$(CC) -std=c11 $(CFLAGS) -c -o $@ $(ARDUINO_SOURCE)/fairlock/$*.c

$(BUILD)/tests/arduino/conformance_rules.o: port/conformance/conformance.c $(ARDUINO_MADE)
	@mkdir -p $(@D)
	$(CC) -std=c11 $(WARNINGS) -I$(ARDUINO_SOURCE)/fairlock $(CFLAGS) -c -o $@ $<

$(BUILD)/tests/arduino/peer.o: tests/conformance/peer.c $(BUILD)/conformance-peer
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(PEER) -c -o $@ $<

$(ARDUINO_CONFORMANCE): tests/arduino/conformance.cpp $(wildcard tests/arduino/core/*) $(ARDUINO_OBJECTS) $(SUPPORT)
	g++ -std=c++11 $(filter-out -Wmissing-prototypes,$(WARNINGS)) -Itests/arduino/core -I$(ARDUINO_SOURCE) -I$(ARDUINO_SOURCE)/fairlock \
	  -Iport/conformance -Itests/conformance $(CXXFLAGS) -o $@ $< tests/arduino/core/core.cpp $(ARDUINO_SOURCE)/Fairlock.cpp \
	  $(filter %.o %.a,$^) $(LDLIBS)

.PHONY: arduino-tests
arduino-tests: $(ARDUINO_TESTS) ## try the library for Arduino: rules, sketches, the class against a server, conformance
	@sh tests/tools/run.sh $^
