//! Has calls inside the shared library stay inside.
//!
//! Functions of the C API that call one another do so by names that the library exports. A program that has RocksDB's names as well (it links RocksDB,
//! or exports functions of its own) would otherwise take such calls, with handles that are not its own.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    }
}
