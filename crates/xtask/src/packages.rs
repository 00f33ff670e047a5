//! Programs of the system that a step of the automation needs: the one that is installed, or Debian's, installed by
//! its ordinary client where that asks nobody for anything.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether what is missing may be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// As root, on a system with `apt-get`.
    IfMissing,
    /// `--offline`.
    Never,
}

/// The path of the first of `names` that is installed; Debian's `package` has one of them.
///
/// # Errors
/// Why there is none, and what to do.
pub fn program(names: &[&str], package: &str, install: Install) -> Result<PathBuf, String> {
    obtain(names[0], &[package], install, || find(names))
}

/// The directory of a shared library whose file's name begins with `name` and a `-` or `.`; one of Debian's `packages`, of
/// which each release has another, has it.
///
/// # Errors
/// As for [`program`].
pub fn library(name: &str, packages: &[&str], install: Install) -> Result<PathBuf, String> {
    obtain(name, packages, install, || find_library(name))
}

/// The result of `find`, now or once one of `packages` is installed.
fn obtain(
    name: &str,
    packages: &[&str],
    install: Install,
    find: impl Fn() -> Option<PathBuf>,
) -> Result<PathBuf, String> {
    if let Some(path) = find() {
        return Ok(path);
    }
    let package = packages[0];
    let by_hand = format!("no {name} is installed: apt-get install {package}");
    if install == Install::Never {
        return Err(format!("{by_hand} (--offline fetches none)"));
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(format!("no {name} is installed, and there is no apt-get"));
    }
    // Only root may, and only root could do it unasked.
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) != 0) {
        return Err(by_hand);
    }
    for attempt in ["with the list of packages that is here", "with a new one"] {
        for package in packages {
            eprintln!("xtask: installing {package} (once), {attempt}");
            apt_get(&["install", "--yes", "--no-install-recommends", package]);
            if let Some(path) = find() {
                return Ok(path);
            }
        }
        // An old list of packages names files that are gone.
        apt_get(&["update"]);
    }
    Err(format!("{package} could not be installed; by hand: apt-get install {package}"))
}

fn apt_get(arguments: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command
        // Another step may be installing.
        .args(["-o", "DPkg::Lock::Timeout=600"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The directory of a library of the system, the newest version's.
fn find_library(name: &str) -> Option<PathBuf> {
    let mut dirs: Vec<PathBuf> =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
            .map(PathBuf::from)
            .to_vec();
    let llvm = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    dirs.extend(llvm.filter(|path| path.to_string_lossy().contains("llvm")).map(|path| path.join("lib")));
    let is_there = |dir: &PathBuf| {
        std::fs::read_dir(dir).into_iter().flatten().flatten().any(|entry| {
            let file = entry.file_name().to_string_lossy().into_owned();
            let version = file.strip_prefix(name).and_then(|rest| rest.strip_prefix(['-', '.']));
            // `libclang-14.so.1` and `libclang.so.1`, not `libclang-cpp.so.14`.
            version
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with("so"))
                && file.contains(".so")
        })
    };
    dirs.into_iter().find(is_there)
}

/// Where one of `names` is in the search path.
fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|dir| names.iter().map(move |name| dir.join(name)))
        .find(|path| path.is_file())
}
