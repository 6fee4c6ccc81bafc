# SPDX-License-Identifier: Apache-2.0
# The package for Node: build/node/fairlock-VERSION.tgz, and, unpacked, build/node/package.
NODE := $(BUILD)/node
NODE_TGZ := $(NODE)/fairlock-$(VERSION).tgz
NODE_OWN := $(filter-out %/rules.mk,$(wildcard boards/node/*.* boards/node/lib/*))
$(call needs,node,$(NODE_TGZ))
$(call needs,$(NODE_TGZ),$(WASM))

$(NODE_TGZ): $(NODE_OWN) $(WASM) LICENSE boards/node/rules.mk
	@sh boards/node/package.sh $(NODE) $(VERSION) $(WASM)

.PHONY: node
node: $(NODE_TGZ) ## make the package for Node: build/node/fairlock-VERSION.tgz
	@echo "$<: $$(wc -c <$<) bytes"
