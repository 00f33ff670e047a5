//! Decides what is linked: Outcrop, compiled into the program, or the library that `ROCKSDB_LIB_DIR` has.
//!
//! The environment variables are those of the original package. Nothing is compiled here.

use std::env::{var, var_os};

fn main() {
    println!("cargo:rerun-if-changed=../build.rs");
    for name in ["ROCKSDB_COMPILE", "ROCKSDB_LIB_DIR", "ROCKSDB_STATIC"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rustc-check-cfg=cfg(outcrop_elsewhere)");
    let compile = var("ROCKSDB_COMPILE").is_ok_and(|value| value == "1" || value.eq_ignore_ascii_case("true"));
    if let (false, Ok(dir)) = (compile, var("ROCKSDB_LIB_DIR")) {
        let kind = if var_os("ROCKSDB_STATIC").is_some() { "static" } else { "dylib" };
        println!("cargo:rustc-cfg=outcrop_elsewhere");
        println!("cargo:rustc-link-search=native={dir}");
        println!("cargo:rustc-link-lib={kind}=rocksdb");
    }
    // The directories that packages that depend on this one may ask for.
    println!("cargo:cargo_manifest_dir={}", var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    println!("cargo:out_dir={}", var("OUT_DIR").expect("cargo sets it"));
}
