# SPDX-License-Identifier: Apache-2.0
# The engine for languages with a loop of their own, as WebAssembly: boards/core/core.h.
WASM := $(BUILD)/core/core.wasm
WASM_SOURCES := $(addprefix lock/,$(addsuffix .c,abandon engine handle links pipeline reply request schedule scripts share \
  status texts turns version)) $(wildcard resp/*.c) boards/core/core.c boards/core/memory.c boards/common/string.c
WASM_FLAGS := --target=wasm32 -mbulk-memory -std=c11 -Oz -flto -ffreestanding -fno-builtin $(WARNINGS) \
  -Iboards/core -Iresp -Iport -Ilock
WASM_LINK := -nostdlib -Wl,--no-entry,--strip-all,--stack-first,-z,stack-size=16384,--max-memory=1073741824
$(call needs,compiler/wasm,clang lld)
$(call needs,$(WASM),compiler/wasm)
$(call needs,wasm,$(WASM))

$(WASM): $(WASM_SOURCES) $(wildcard boards/core/*.h lock/*.h resp/*.h port/*.h) boards/core/rules.mk
	@mkdir -p $(@D)
	clang $(WASM_FLAGS) $(WASM_LINK) -o $@ $(WASM_SOURCES)
	@echo "$@: $$(wc -c <$@) bytes"

.PHONY: wasm
wasm: $(WASM) ## build the engine for languages with a loop of their own: build/core/core.wasm
