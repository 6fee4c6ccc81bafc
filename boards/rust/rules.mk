# SPDX-License-Identifier: Apache-2.0
# The crate: build/rust/fairlock-VERSION.crate, and what is packed in it as a folder beside it.
RUST := $(abspath $(BUILD))/rust
RUST_CRATE := $(BUILD)/rust/fairlock-$(VERSION).crate
RUST_C := $(wildcard resp/*.[ch] lock/*.[ch] port/*.h port/single/*.h port/posix/*.[ch] port/openssl/*.[ch] boards/service/*.[ch])
RUST_OWN := $(filter-out %/rules.mk,$(wildcard boards/rust/*.* boards/rust/csrc/* boards/rust/src/* boards/rust/examples/* boards/rust/tests/*.rs boards/rust/tests/*/*))
$(call needs,compiler/cargo,cargo=cargo-web rustc=rustc-web)
$(call needs,$(RUST_CRATE),compiler/cargo)
$(call needs,rust,$(RUST_CRATE))

$(RUST_CRATE): $(RUST_C) $(RUST_OWN) LICENSE boards/rust/rules.mk
	@mkdir -p $(@D)
	@sh boards/rust/package.sh $(RUST) $(VERSION) $(RUST_C)

.PHONY: rust
rust: $(RUST_CRATE) ## make the crate for Rust: build/rust/fairlock-VERSION.crate
	@echo $<
