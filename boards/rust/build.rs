// SPDX-License-Identifier: Apache-2.0
//! Compiles the library's sources in C: those in `c/`, where the package has them, or those of the
//! repository that this is a folder of.
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let packaged = here.join("c");
    let top = if packaged.is_dir() { packaged } else { here.join("../..") };
    let with = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let (std, embedded, openssl) = (with("STD"), with("EMBEDDED"), with("OPENSSL"));
    println!("cargo:rerun-if-changed=csrc");

    let mut build = cc::Build::new();
    build.std("c11").warnings(false).flag_if_supported("-Wno-psabi");
    // Sources for one release and one threads port: with std, the embedded client has that of POSIX, too.
    let threads = if std { "port/posix" } else { "port/single" };
    let mut folders = vec!["resp", "lock"];
    if std {
        folders.push("port/posix");
    }
    if openssl {
        folders.push("port/openssl");
        if let Some(include) = env::var_os("DEP_OPENSSL_INCLUDE") {
            build.include(include);
        }
    }
    for folder in ["resp", "lock", "port", threads, "port/openssl", "boards/service"] {
        build.include(top.join(folder));
    }
    for folder in folders {
        add_all(&mut build, &top.join(folder));
    }
    if std {
        println!("cargo:rerun-if-changed={}", top.join("boards/service").display());
        build.file(top.join("boards/service/service.c"));
        build.file("csrc/service.c");
        if !openssl {
            build.file(top.join("boards/service/no_tls.c"));
        }
    }
    if embedded {
        build.file("csrc/embedded.c");
    }
    build.compile("fairlock");
    if std {
        println!("cargo:rustc-link-lib=pthread");
    }
    if embedded {
        write_sizes(&out.join("libfairlock.a"), &out.join("sizes.rs"));
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn add_all(build: &mut cc::Build, folder: &Path) {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|kind| kind == "c"));
    files.sort();
    build.files(files);
}

/// The sizes of the structs in C, which Rust provides the memory for, are those of the target's compiler,
/// and nothing of the target can be run here. So an object has them as digits behind a mark.
fn write_sizes(library: &Path, to: &Path) {
    const MARK: &[u8] = b"fairlock sizes:";
    let bytes = fs::read(library).expect("the library was compiled");
    let found = bytes.windows(MARK.len()).position(|window| window == MARK);
    let digits = found.map(|at| &bytes[at + MARK.len()..]).and_then(|rest| rest.get(..18));
    let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let text = text.expect("the C compiler leaves constants as they are: no -flto in CFLAGS");
    let sizes: Vec<usize> = text.split_whitespace().map(|number| number.parse().expect("digits")).collect();
    let names = ["CLIENT", "SLOT", "HANDLE"];
    let lines =
        names.iter().zip(sizes).map(|(name, size)| format!("pub(super) const {name}: usize = {size};\n"));
    fs::write(to, lines.collect::<String>()).expect("OUT_DIR can be written");
}
