# SPDX-License-Identifier: Apache-2.0
# The module for Go: build/go/fairlock-vVERSION.zip, and, unpacked, build/go/module.
GO_FOLDER := $(BUILD)/go
GO_ZIP := $(GO_FOLDER)/fairlock-v$(VERSION).zip
GO_OWN := $(wildcard boards/go/*.go) boards/go/go.mod boards/go/README.md boards/go/package.sh
$(call needs,go,$(GO_ZIP))
$(call needs,go-client,go=golang-go)
$(call needs,$(GO_ZIP),go-client compiler/wasm)

# With the names of C's functions, which a profile of a program then shows.
GO_WASM := $(GO_FOLDER)/fairlock.wasm

$(GO_WASM): $(WASM)
	@mkdir -p $(@D)
	clang $(WASM_FLAGS) $(subst --strip-all,--strip-debug,$(WASM_LINK)) -o $@ $(WASM_SOURCES)

$(GO_ZIP): $(GO_OWN) $(wildcard boards/go/tools/*/*.go) $(GO_WASM) LICENSE
	@sh boards/go/package.sh $(abspath $(GO_FOLDER)) $(VERSION) $(GO_WASM)

.PHONY: go
go: $(GO_ZIP) ## make the module for Go: build/go/fairlock-vVERSION.zip
	@echo "$<: $$(wc -c <$<) bytes"

# Its tests are inside the package, of which they have a copy, and their program is also a client for tests/interop.
GO_TEST := $(GO_FOLDER)/test
GO_TEST_FILES := $(wildcard boards/go/test/*_test.go)
GO_CLIENT := $(COMPAT)/go/client
GO_TESTS := $(addprefix boards/go/test/,test_go.sh test_package.sh test_peer.sh)
SUITES += $(GO_TESTS)
$(call needs,$(GO_CLIENT),$(GO_ZIP))
$(call needs,$(GO_TESTS),$(GO_ZIP) $(BUILD)/redis-server)
$(call needs,boards/go/test/test_go.sh,gcc libc6-dev)
$(call needs,$(addprefix boards/go/test/,test_package.sh test_peer.sh),python3)
boards/go/test/test_go.sh: | all $(GO_TEST)/ready $(COMPAT)/this/client $(BUILD)/redis-server
boards/go/test/test_package.sh: | all $(GO_TEST)/ready $(BUILD)/redis-server
boards/go/test/test_peer.sh: | $(GO_CLIENT) $(BUILD)/redis-server

$(GO_TEST)/ready: $(GO_TEST_FILES) $(GO_ZIP)
	@rm -rf $(@D) && cp -r $(GO_FOLDER)/module $(@D) && cp $(GO_TEST_FILES) $(@D)
	@touch $@

$(GO_CLIENT): $(GO_TEST)/ready
	@mkdir -p $(@D)
	cd $(GO_TEST) && CGO_ENABLED=0 go test -c -o $(abspath $@) .
