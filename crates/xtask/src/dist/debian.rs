//! The tree as a package of Debian, made by `dpkg-deb`.
//!
//! One package for programs and for those who build them. It takes the place of Debian's `librocksdb-dev`, whose files have the
//! same names.

use super::{API, MAJOR, command, write};
use crate::sources::make_dir;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its name.
pub const NAME: &str = "librocksdb-outcrop";

/// Makes it of `tree`; gives the file, in `dir`.
pub fn package(tree: &Path, dir: &Path) -> Result<PathBuf, String> {
    let architecture = command(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let place = dir.join("debian");
    if place.exists() {
        std::fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    }
    let usr = place.join("usr");
    make_dir(&usr)?;
    command(Command::new("cp").arg("-a").arg(format!("{}/.", tree.display())).arg(&usr))?;
    let doc = usr.join("share/doc").join(NAME);
    let licences = usr.join("share/doc/rocksdb");
    std::fs::rename(&licences, &doc).map_err(|error| format!("{}: {error}", licences.display()))?;
    write(
        &doc.join("copyright"),
        "Licence: Apache-2.0 or MIT, at your choice: LICENSE-APACHE and LICENSE-MIT here.\n",
    )?;
    control(&place, architecture)?;
    let file = dir.join(format!("{NAME}_{}_{architecture}.deb", env!("CARGO_PKG_VERSION")));
    command(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).args([&place, &file]))?;
    Ok(file)
}

fn control(place: &Path, architecture: &str) -> Result<(), String> {
    let size = command(Command::new("du").args(["-sk", "--apparent-size"]).arg(place.join("usr")))?;
    let kilobytes = size.split_whitespace().next().unwrap_or("0");
    let text = format!(
        "Package: {NAME}\nVersion: {}\nArchitecture: {architecture}\nSection: libs\nPriority: optional\n\
         Maintainer: The Outcrop developers <outcrop-db@users.noreply.github.com>\nInstalled-Size: {kilobytes}\n\
         Depends: libc6, libgcc-s1\nProvides: librocksdb{MAJOR}, librocksdb-dev (= {API})\n\
         Conflicts: librocksdb-dev\nReplaces: librocksdb-dev\n\
         Homepage: https://github.com/outcrop-db/outcrop\n\
         Description: embedded key-value store with the C API of RocksDB {API}\n \
         Outcrop as librocksdb.so.{MAJOR}: programs that use RocksDB's C API are built for it and run with it.\n",
        env!("CARGO_PKG_VERSION")
    );
    write(&place.join("DEBIAN/control"), &text)?;
    // The loader's cache is renewed once it is installed or removed.
    write(&place.join("DEBIAN/triggers"), "activate-noawait ldconfig\n")?;
    let sums = "cd \"$1\" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums";
    command(Command::new("sh").args(["-euc", sums, "sh"]).arg(place)).map(|_| ())
}
