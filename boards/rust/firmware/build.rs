// SPDX-License-Identifier: Apache-2.0
fn main() {
    // Where link.x is.
    println!("cargo:rustc-link-search={}", env!("CARGO_MANIFEST_DIR"));
    println!("cargo:rerun-if-changed=link.x");
}
