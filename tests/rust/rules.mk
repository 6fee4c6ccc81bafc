# SPDX-License-Identifier: Apache-2.0
# The crate for Rust: boards/rust.
RUST_TESTS := $(wildcard tests/rust/test_*.sh)
SUITES += $(RUST_TESTS)
$(call needs,tests/rust/test_crate.sh,compiler/cargo cargo-clippy=rust-web-clippy rustfmt=rustfmt-web gcc libc6-dev pkg-config=pkgconf \
  python3 openssl-library $(TLS_CERTIFICATES)/made $(BUILD)/redis-server)
tests/rust/test_crate.sh: | $(RUST_CRATE) $(TLS_CERTIFICATES)/made $(BUILD)/redis-server
