# SPDX-License-Identifier: Apache-2.0
# The client for other languages, in an archive: with TLS if the library has it.
SERVICE := $(BUILD)/service/libfls.a
SERVICE_OBJECTS := $(BUILD)/boards/service/service.o $(if $(TLS_LIBS),,$(BUILD)/boards/service/no_tls.o)
$(BUILD)/boards/service/%.o: LIB_CFLAGS += $(PIC)

$(SERVICE): $(SERVICE_OBJECTS) $(TLS_MARK)
	@mkdir -p $(@D)
	rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

.PHONY: service
service: $(SERVICE) $(BUILD)/liblock.a ## build the client for bindings of other languages, boards/service: build/service/libfls.a, to link in front of liblock.a; TLS=openssl has rediss://
	@echo "$^"

.PHONY: size-service
size-service: $(SERVICE) $(BUILD)/liblock.a ## print what the client for other languages and its options take in a program
	@sh boards/service/size.sh $(BUILD) $(AR)
