//! The files that an engine wrote about itself into its directory: logs and OPTIONS, read when a session
//! has ended.
//!
//! ```text
//! LOG.old.1700000000000000, LOG.old.1700000000500000, LOG   one text, oldest opening first -> [`EngineLog`]
//! LOG                                                       its banner: version and hash of the source
//! OPTIONS-000012                                            what options were resolved to
//! ```
//! A session opens its database anew for steps with options of their own, and each opening begins another LOG.

use crate::store::EngineLog;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The engine's own logs and options.
#[derive(Debug, Default)]
pub(super) struct EngineFacts {
    pub version: Option<String>,
    /// The first characters of the hash of its source.
    pub git_sha: Option<String>,
    /// The newest OPTIONS file.
    pub options: Option<String>,
    /// Its logs; `None` if it wrote none.
    pub log: Option<EngineLog>,
}

/// Reads the engine's logs and OPTIONS file in `dir`, if it has any.
pub(super) fn engine_facts(dir: &Path) -> EngineFacts {
    /// More of a log than its banner takes.
    const BANNER: u64 = 1 << 16;
    let banner = File::open(dir.join("LOG")).ok().and_then(|file| {
        let mut bytes = Vec::new();
        file.take(BANNER).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    });
    let banner = banner.unwrap_or_default();
    let after = |words: &str| banner.split_once(words)?.1.split_whitespace().next().map(str::to_string);
    // `RocksDB version: 11.8.1`; ours `outcrop-0.1.0`, or once `outcrop 0.1.0: opening ...`.
    let outcrop = || Some(after("outcrop ")?.trim_end_matches(':').to_string());
    let version = after("RocksDB version:").or_else(|| after("server version:")).or_else(outcrop);
    EngineFacts {
        version: version.map(|version| version.trim_start_matches("outcrop-").to_string()),
        git_sha: after("Git sha ").and_then(|text| git_sha(&text)),
        options: newest_options(dir),
        log: one_text(logs(dir)),
    }
}

/// The hash in what a log says of it: older versions write the name of a variable before it, and builds without git
/// write 0 or what was to be replaced.
fn git_sha(text: &str) -> Option<String> {
    /// As long as RocksDB's benchmark scripts cut it.
    const SHOWN: usize = 10;
    let hash = text.rsplit(':').next().unwrap_or_default();
    let is_hash = hash.len() >= SHOWN && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| hash[..SHOWN].to_string())
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The text of the newest OPTIONS file in `dir`.
pub(crate) fn newest_options(dir: &Path) -> Option<String> {
    let is_options = |name: &String| name.starts_with("OPTIONS-") && !name.ends_with(".dbtmp");
    let newest = names(dir).into_iter().rfind(is_options)?;
    std::fs::read_to_string(dir.join(newest)).ok()
}

/// Logs of all openings, oldest first: names carry the time, and LOG alone is the last.
fn logs(dir: &Path) -> Vec<PathBuf> {
    let is_old = |name: &String| name.starts_with("LOG.old");
    let old = names(dir).into_iter().filter(is_old);
    old.chain(["LOG".to_string()]).map(|name| dir.join(name)).filter(|path| path.is_file()).collect()
}

/// Reads `files` as one text, without its middle if it is long; `None` if there is nothing in them.
fn one_text(files: Vec<PathBuf>) -> Option<EngineLog> {
    /// Bytes kept of the beginning, and of the end.
    const KEPT: u64 = 2 << 20;
    const WHOLE: u64 = 2 * KEPT;
    let open = |path: PathBuf| {
        let file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        Some((file, length))
    };
    let mut files: Vec<(File, u64)> = files.into_iter().filter_map(open).collect();
    let bytes: u64 = files.iter().map(|(_, length)| length).sum();
    let text = match bytes {
        0 => return None,
        1..=WHOLE => stretch(&mut files, 0, bytes),
        _ => {
            let (head, tail) = (stretch(&mut files, 0, KEPT), stretch(&mut files, bytes - KEPT, KEPT));
            format!("{head}\n[{} bytes are not kept]\n{tail}", bytes - WHOLE)
        }
    };
    Some(EngineLog { bytes, text })
}

/// `count` bytes of the text that `files` are together, from `from` on; less if a file cannot be read.
fn stretch(files: &mut [(File, u64)], from: u64, count: u64) -> String {
    let mut text = Vec::new();
    let mut start = 0;
    for (file, length) in files {
        let (first, last) = (from.max(start), (from + count).min(start + *length));
        if first < last && file.seek(SeekFrom::Start(first - start)).is_ok() {
            // Bytes that were read before an error are kept.
            let _ = file.take(last - first).read_to_end(&mut text);
        }
        start += *length;
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_asked_by_its_files() {
        let temp = tempfile::tempdir().unwrap();
        let nothing = engine_facts(temp.path());
        assert!(nothing.version.is_none() && nothing.git_sha.is_none() && nothing.log.is_none());
        let banner = b"2026 1 RocksDB version: 8.11.4\n2026 1 Git sha 66b6c1f8ddfcbd4f25b1f38a5b1f\n\xff";
        std::fs::write(temp.path().join("LOG"), banner).unwrap();
        std::fs::write(temp.path().join("OPTIONS-000007"), "old").unwrap();
        std::fs::write(temp.path().join("OPTIONS-000012"), "new").unwrap();
        let facts = engine_facts(temp.path());
        assert_eq!((facts.version.as_deref(), facts.options.as_deref()), (Some("8.11.4"), Some("new")));
        assert_eq!(facts.git_sha.as_deref(), Some("66b6c1f8dd"));
        assert_eq!(facts.log.unwrap().bytes, banner.len() as u64);
        std::fs::write(temp.path().join("LOG"), "2026 outcrop 1.2.3: opening /x\n").unwrap();
        let ours = engine_facts(temp.path());
        assert_eq!((ours.version.as_deref(), ours.git_sha), (Some("1.2.3"), None));
        let text = "2026 1 RocksDB version: outcrop-1.2.4 (an engine of its own)\n2026 1 Git sha unknown\n";
        std::fs::write(temp.path().join("LOG"), text).unwrap();
        let ours = engine_facts(temp.path());
        assert_eq!((ours.version.as_deref(), ours.git_sha), (Some("1.2.4"), None));
    }

    #[test]
    fn a_hash_is_told_from_what_stands_for_none() {
        let hash = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(git_sha(&format!("rocksdb_build_git_sha:{hash}")).as_deref(), Some("0123456789"));
        for none in ["0", "rocksdb_build_git_sha:@GIT_SHA@", "@@GIT_SHA@@", "", "Compile"] {
            assert_eq!(git_sha(none), None, "{none}");
        }
    }

    #[test]
    fn logs_of_all_openings_are_one_text_without_its_middle() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(temp.path().join(name), text).unwrap();
        write("LOG", "third\n");
        write("LOG.old.1795235645123456", "second\n");
        write("LOG.old.1795235640000000", "first\n");
        write("000012.log", "no log of this kind");
        let read = || engine_facts(temp.path()).log.unwrap();
        assert_eq!((read().text.as_str(), read().bytes), ("first\nsecond\nthird\n", 19));
        let half = "x".repeat(3 << 20);
        write("LOG.old.1795235645123456", &half);
        write("LOG", &format!("{half}last\n"));
        let long = read();
        assert_eq!(long.bytes, 2 * (3 << 20) + 11);
        assert!(long.text.len() < (4 << 20) + 100, "{}", long.text.len());
        assert!(long.text.starts_with("first\nxx") && long.text.ends_with("xxlast\n"));
        let left_out = long.bytes - (4 << 20);
        assert!(long.text.contains(&format!("x\n[{left_out} bytes are not kept]\nx")));
    }
}
