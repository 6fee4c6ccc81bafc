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

# Its tests. What checks types and layout is the tests' alone, by the checksums in that folder.
NODE_TOOLS := $(NODE)/tools/ready
NODE_TESTS := $(addprefix boards/node/test/,test_client.mjs test_faults.mjs test_package.sh test_peer.sh)
SUITES += $(NODE_TESTS)
$(call needs,npm-client,node=nodejs npm=npm)
$(call needs,$(NODE_TESTS),npm-client $(NODE_TGZ) $(BUILD)/redis-server)
$(call needs,boards/node/test/test_faults.mjs,$(TLS_CERTIFICATES)/made)
$(call needs,boards/node/test/test_peer.sh,python3)
$(NODE_TESTS): | all $(NODE_TGZ) $(BUILD)/redis-server
$(addprefix boards/node/test/,test_client.mjs test_faults.mjs): | $(COMPAT)/this/client $(TLS_CERTIFICATES)/made
boards/node/test/test_package.sh: | $(NODE_TOOLS)

$(NODE_TOOLS): $(wildcard boards/node/test/tools/*)
	mkdir -p $(@D) && cp $(filter %.json,$^) $(@D) && cd $(@D) && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@
