//! The manifests of `packages/librocksdb-sys`: one text, with the version and its features filled in, and one that builds
//! the C API as a Rust library alone.

use super::Release;

/// The manifest of one version.
pub fn manifest(release: &Release) -> String {
    let Release { name, version, jemalloc, newer_features } = release;
    let more = match newer_features {
        true => "bindgen-runtime = []\nbindgen-static = []\nlto = []\nmt_static = []\n",
        false => "",
    };
    let default = if *newer_features { "\"static\", \"bindgen-runtime\"" } else { "\"static\"" };
    format!(
        "# Made by `REWRITE=1 cargo xtask declarations`; not to be changed by hand. ../README.md says what this is.
[package]
name = \"librocksdb-sys\"
description = \"Outcrop in the place of RocksDB: declarations of its C API as librocksdb-sys {name} has them\"
version = \"{version}\"
edition = \"2024\"
rust-version = \"1.90\"
license = \"Apache-2.0 OR MIT\"
repository = \"https://github.com/outcrop-db/outcrop\"
publish = false
links = \"rocksdb\"
build = \"../build.rs\"

[lib]
name = \"librocksdb_sys\"
path = \"../src/lib.rs\"
doctest = false

# Only `jemalloc` has an effect; ../README.md has a row for each.
[features]
default = [{default}]
bzip2 = []
io-uring = []
jemalloc = [\"dep:tikv-jemalloc-sys\"]
lz4 = []
rtti = []
snappy = []
static = []
zlib = []
zstd = []
{more}
[dependencies]
libc = \"0.2\"
outcrop-capi = {{ path = \"../capi\" }}
tikv-jemalloc-sys = {{ version = \"{jemalloc}\", features = [\"unprefixed_malloc_on_supported_platforms\"], optional = true }}

[workspace]
"
    )
}

/// The C API without the shared library that `crates/capi` makes as well: cargo would link it in the build of everybody, and
/// begin only after the engine's code was generated.
pub const CAPI: &str = "# Made by `REWRITE=1 cargo xtask declarations`; not to be changed by hand. ../README.md says what this is.
[package]
name = \"outcrop-capi\"
description = \"RocksDB's C API over the Outcrop engine, as a Rust library alone\"
version = \"0.1.0\"
edition = \"2024\"
rust-version = \"1.90\"
license = \"Apache-2.0 OR MIT\"
repository = \"https://github.com/outcrop-db/outcrop\"
publish = false

[lib]
path = \"../../../crates/capi/src/lib.rs\"
doctest = false
test = false

[dependencies]
outcrop = { path = \"../../../crates/engine\" }
outcrop-options = { path = \"../../../crates/options\" }
libc = \"0.2\"

[workspace]
";
