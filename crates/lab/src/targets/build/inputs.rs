//! The ingredients of a build that its flags only point to: files they name, such as profiles, and the processor that `native` is.
//!
//! ```text
//! -Cprofile-use=/x/merged.profdata  ->  "/x/merged.profdata 3f9a.."         the same path with other contents is another build
//! -march=native                     ->  "native AMD EPYC 7763, 51c0.."      and so is the same word on another machine
//! ```

use super::{hexadecimal, tree_checksum};
use crate::targets::maven;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The inputs that `flags` point to, in their order; nothing for flags that say all themselves.
///
/// # Errors
/// A sentence if a file that is named cannot be read.
pub(super) fn of(flags: &[String]) -> Result<Vec<String>, String> {
    let mut inputs = Vec::new();
    for flag in flags {
        let value = flag.split_once('=').map_or(flag.as_str(), |(_, value)| value);
        let path = Path::new(value);
        if value == "native" {
            let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            inputs.push(format!("native {}", processor(&cpuinfo)));
        } else if path.is_absolute() && path.is_file() {
            let sum = maven::checksum(path).map_err(|error| error.to_string())?;
            inputs.push(format!("{value} {sum}"));
        } else if path.is_absolute() && path.is_dir() {
            inputs.push(format!("{value} {}", tree_checksum(path, files(path)?)?));
        }
    }
    Ok(inputs)
}

/// Model and instruction sets of the first processor.
fn processor(cpuinfo: &str) -> String {
    let value = |names: [&str; 2]| {
        let found = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        found.map(|(name, value)| (name.trim(), value.trim())).find(|(name, _)| names.contains(name))
    };
    let model = value(["model name", "CPU part"]).map_or("unknown", |(_, model)| model);
    let sets = value(["flags", "Features"]).map_or("", |(_, sets)| sets);
    format!("{model}, {}", &hexadecimal(&Sha256::digest(sets))[..16])
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            all.extend(files(&path)?);
        } else {
            all.push(path);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_same_name_with_other_contents_is_another_input() {
        let temp = tempfile::tempdir().unwrap();
        let profile = temp.path().join("a.profdata");
        let flags = ["-O3".to_string(), "-C".to_string(), format!("profile-use={}", profile.display())];
        assert_eq!(of(&flags).unwrap(), Vec::<String>::new(), "the compiler will say that it is not there");
        std::fs::write(&profile, "one").unwrap();
        let one = of(&flags).unwrap();
        std::fs::write(&profile, "two").unwrap();
        let two = of(&flags).unwrap();
        assert!(one.len() == 1 && two.len() == 1 && one != two, "{one:?} {two:?}");
        let dir = [format!("-fprofile-use={}", temp.path().display())];
        let before = of(&dir).unwrap();
        std::fs::write(temp.path().join("b.gcda"), "more").unwrap();
        assert_ne!(before, of(&dir).unwrap());
    }

    #[test]
    fn native_is_the_processor_that_it_is() {
        let one =
            "processor\t: 0\nmodel name\t: A 1\nflags\t\t: sse avx\n\nprocessor\t: 1\nmodel name\t: A 1\n";
        let other = one.replace("sse avx", "sse avx avx512f");
        assert!(processor(one).starts_with("A 1, ") && processor(one) != processor(&other));
        let found = of(&["-march=native".to_string(), "-march=x86-64-v3".to_string()]).unwrap();
        assert!(found.len() == 1 && found[0].starts_with("native "), "{found:?}");
    }
}
