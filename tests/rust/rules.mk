# SPDX-License-Identifier: Apache-2.0
# The crate for Rust: boards/rust.
RUST_TESTS := $(wildcard tests/rust/test_*.sh)
RUST_DRIVER := $(BUILD)/rust/target/debug/examples/driver
SUITES += $(RUST_TESTS)
$(call needs,tests/rust/test_crate.sh,compiler/cargo cargo-clippy=rust-web-clippy rustfmt=rustfmt-web gcc libc6-dev pkg-config=pkgconf \
  python3 $(BUILD)/rust/fairlock-$(VERSION).crate openssl-library $(BUILD)/tls/certificates/made $(BUILD)/redis-server)

# What the file alone gives. Cargo compares the times of sources, which are all the same in it.
RUST_ALONE := $(BUILD)/rust/alone/fairlock-$(VERSION)
$(RUST_ALONE): $(BUILD)/rust/fairlock-$(VERSION).crate
	@rm -rf $(@D) && mkdir -p $(@D) && tar -xzmf $< -C $(@D)

tests/rust/test_crate.sh: | $(RUST_ALONE) $(BUILD)/tls/certificates/made $(BUILD)/redis-server

# On a Cortex-M3, with Debian's Rust: its `core` is compiled, too.
RUST_FIRMWARE := $(BUILD)/rust/firmware/thumbv7m-none-eabi/release/fairlock-firmware
$(call needs,tests/rust/test_firmware.sh,$(RUST_FIRMWARE) qemu-system-arm $(BUILD)/redis-server)
# Debian's, also beside a Rust without this target.
$(call needs,$(RUST_FIRMWARE),cargo-web rustc-web rust-web-src compiler/arm-none-eabi-gcc)
tests/rust/test_firmware.sh: | all $(RUST_FIRMWARE) $(RUST_DRIVER) $(BUILD)/redis-server

$(RUST_FIRMWARE): $(BUILD)/rust/fairlock-$(VERSION).crate $(wildcard boards/rust/firmware/*.* boards/rust/firmware/*/*)
	sh boards/rust/firmware/build.sh $(RUST)/firmware
	@touch $@

$(RUST_DRIVER): $(RUST_ALONE)
	cd $< && CARGO_TARGET_DIR=$(RUST)/target cargo build -q --features embedded --example driver
	@touch $@
