//! `outcrop ldb`, asked what RocksDB's `tools/ldb_test.py` asks of its tool: the same commands, flags and answers.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory with a database in it.
struct Shell {
    temp: tempfile::TempDir,
}

impl Shell {
    fn new() -> Shell {
        Shell { temp: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn run_on(&self, db: &Path, words: &str, input: &[u8]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_outcrop"))
            .arg("ldb")
            .arg(format!("--db={}", db.display()))
            .args(words.split(' ').filter(|word| !word.is_empty()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    fn ok_on(&self, db: &Path, words: &str, input: &[u8]) -> String {
        let output = self.run_on(db, words, input);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text.trim_end().to_string()
    }

    /// Its output; it has to succeed.
    fn ok(&self, words: &str) -> String {
        self.ok_on(&self.path("db"), words, b"")
    }

    /// Its complaint; it has to fail.
    fn fails(&self, words: &str) -> String {
        let output = self.run_on(&self.path("db"), words, b"");
        assert!(!output.status.success(), "{words} succeeds");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn files(&self, end: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("db")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_string_lossy().ends_with(end)).collect()
    }
}

#[test]
fn keys_are_written_read_and_deleted() {
    let shell = Shell::new();
    shell.fails("put x1 y1");
    assert_eq!(shell.ok("put --create_if_missing x1 y1"), "OK");
    assert_eq!(shell.ok("put x2 y2"), "OK");
    assert_eq!(shell.ok("multi_get x1 x2"), "x1 ==> y1\nx2 ==> y2");
    assert_eq!(shell.ok("get x3"), "Key not found");
    assert_eq!(shell.ok("multi_get x3"), "Key not found: x3");
    shell.fails("put_entity x4");
    shell.fails("put_entity x4 cv1");
    assert_eq!(shell.ok("put_entity x4 :cv1"), "OK");
    assert_eq!(shell.ok("get_entity x4"), ":cv1");
    assert_eq!(shell.ok("put_entity x5 cn1:cv1 cn2:cv2"), "OK");
    assert_eq!(shell.ok("get_entity x5"), "cn1:cv1 cn2:cv2");
    let rows = "x1 ==> y1\nx2 ==> y2\nx4 ==> cv1\nx5 ==> cn1:cv1 cn2:cv2";
    assert_eq!(shell.ok("scan --from=x1 --to=z"), rows);
    assert_eq!(shell.ok("scan --from=x1 --to=z --max_keys=1"), "x1 ==> y1");
    assert_eq!(shell.ok("scan --no_value --to=x4"), "x1\nx2");
    assert_eq!(shell.ok("singledelete x4"), "OK");
    assert_eq!(shell.ok("deleterange x5 x6"), "OK");
    assert_eq!(shell.ok("scan"), "x1 ==> y1\nx2 ==> y2");
    assert_eq!(shell.ok("delete NonExistentKey"), "OK");
    assert_eq!(shell.ok("checkconsistency"), "OK");
    assert_eq!(shell.ok("batchput x6 y6 x7 y7"), "OK");
    shell.fails("batchput k1 v1 k2");
    shell.fails("batchput");
}

#[test]
fn hexadecimal_comes_and_goes() {
    let shell = Shell::new();
    assert_eq!(shell.ok("put a1 b1 --create_if_missing"), "OK");
    shell.fails("put --hex 6132 6232");
    assert_eq!(shell.ok("put --hex 0x6132 0x6232"), "OK");
    assert_eq!(shell.ok("scan --hex"), "0x6131 ==> 0x6231\n0x6132 ==> 0x6232");
    assert_eq!(shell.ok("multi_get --hex 0x6131 0xBEEF"), "0x6131 ==> 0x6231\nKey not found: 0xBEEF");
    assert_eq!(shell.ok("get --key_hex 0x6132"), "b2");
    assert_eq!(shell.ok("get --value_hex a2"), "0x6232");
    assert_eq!(shell.ok("scan --key_hex --to=0x6132"), "0x6131 ==> b1");
    assert_eq!(shell.ok("batchput --hex 0x6133 0x6233 0x6134 0x6234"), "OK");
    assert_eq!(shell.ok("delete --hex 0x6133"), "OK");
    assert_eq!(shell.ok("scan"), "a1 ==> b1\na2 ==> b2\na4 ==> b4");
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let shell = Shell::new();
    assert!(shell.fails("put 0x6133 0x6233 --he --create_if_missing").contains("--he"));
    assert!(shell.fails("put a b --max_keys=1 --create_if_missing").contains("max_keys"));
    shell.fails("put 0x6133 0x6233 --hex=Boo --create_if_missing");
    assert!(shell.fails("put a b --ttl --create_if_missing").contains("--ttl"));
    assert!(shell.fails("reduce_levels").contains("reduce_levels is not supported"));
    assert!(shell.fails("put a").contains("usage: put KEY VALUE"));
    assert!(!shell.path("db").exists());
}

#[test]
fn rows_are_counted_by_what_is_before_a_delimiter() {
    let shell = Shell::new();
    shell.ok("batchput x.1 x1 --create_if_missing");
    shell.ok("batchput y.abc abc y.2 2 z.13c pqr");
    let counted = "x => count:1\tsize:5\ny => count:2\tsize:12\nz => count:1\tsize:8";
    for dump in ["dump --count_delim", "dump --count_delim=.", "idump --count_delim"] {
        assert_eq!(shell.ok(dump), counted, "{dump}");
    }
    shell.ok("batchput x,2 x2 x,abc xabc");
    assert_eq!(
        shell.ok("dump --count_delim=,"),
        "x => count:2\tsize:14\nx.1 => count:1\tsize:5\ny.2 => count:1\tsize:4\ny.abc => count:1\tsize:8\nz.13c => count:1\tsize:8"
    );
    let counted = shell.ok("dump --count_only");
    assert!(
        counted.starts_with("Keys in range: 6\nValue size distribution: \nCount: 6 Average: 2.5000 "),
        "{counted}"
    );
    assert!(counted.ends_with("#") && counted.contains("(       1,       2 ]"), "{counted}");
}

#[test]
fn what_is_dumped_can_be_loaded_and_ingested() {
    let shell = Shell::new();
    shell.ok("batchput --create_if_missing x1 y1 x2 y2 x3 y3 x4 y4");
    let all = "x1 ==> y1\nx2 ==> y2\nx3 ==> y3\nx4 ==> y4";
    let dumped = shell.ok("dump");
    assert_eq!(dumped, format!("{all}\nKeys in range: 4"));
    let loads = [
        ("", "--create_if_missing"),
        ("--hex", "--hex --create_if_missing"),
        ("", "--disable_wal --create_if_missing --compact"),
        (
            "",
            "--bloom_bits=14 --block_size=1024 --auto_compaction=true --write_buffer_size=4194304 --file_size=2097152 --create_if_missing",
        ),
        (
            "",
            "--enable_blob_files --min_blob_size=1 --blob_file_size=2097152 --create_if_missing --disable_wal",
        ),
    ];
    for (index, (dump, load)) in loads.into_iter().enumerate() {
        let (rows, other) = (shell.ok(&format!("dump {dump}")), shell.path(&format!("loaded{index}")));
        shell.ok_on(&other, &format!("load {load}"), rows.as_bytes());
        assert_eq!(shell.ok_on(&other, "scan", b""), all, "{load}");
    }
    let has_blobs = std::fs::read_dir(shell.path("loaded4")).unwrap();
    assert!(has_blobs.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "blob")));
    let (table, other) = (shell.path("external.sst"), shell.path("ingested"));
    let made = shell.run_on(
        &other,
        &format!("write_extern_sst {} --create_if_missing", table.display()),
        dumped.as_bytes(),
    );
    assert!(String::from_utf8_lossy(&made.stderr).contains("external SST file written to"), "{made:?}");
    let taken = shell.run_on(&other, &format!("ingest_extern_sst {}", table.display()), b"");
    assert!(String::from_utf8_lossy(&taken.stderr).contains("external SST files ingested"), "{taken:?}");
    assert_eq!(shell.ok_on(&other, "scan", b""), all);
}

#[test]
fn entries_are_shown_as_they_are_stored() {
    let shell = Shell::new();
    shell.ok("put a val --create_if_missing");
    shell.ok("put b val");
    assert_eq!(
        shell.ok("idump"),
        "'a' seq:1, type:1 => val\n'b' seq:2, type:1 => val\nInternal keys in range: 2"
    );
    assert_eq!(
        shell.ok("idump --input_key_hex --from=0x61 --to=0x62"),
        "'a' seq:1, type:1 => val\nInternal keys in range: 1"
    );
    shell.ok("put c val --enable_blob_files");
    shell.ok("put d val --enable_blob_files");
    assert!(shell.ok("idump --decode_blob_index").contains("[blob ref] file:"));
    let manifest = shell.ok("manifest_dump --verbose");
    assert!(
        manifest.contains("Column family \"default\"") && manifest.contains("seq:1, type:1"),
        "{manifest}"
    );
    let wal = shell.files(".log").pop().unwrap();
    let dumped = shell.ok(&format!("dump_wal --walfile={} --header --print_value", wal.display()));
    assert!(dumped.starts_with("Sequence,Count,ByteSize,Physical Offset,Key(s) : value \n"), "{dumped}");
    assert!(dumped.contains("4,1,") && dumped.contains("PUT(0) : 0x64 : 0x76616C"), "{dumped}");
    let table = shell.files(".sst").pop().unwrap();
    assert!(shell.ok(&format!("dump --path={}", table.display())).contains("Sst file format:"));
    let blob = shell.files(".blob").pop().unwrap();
    let (table, raw) =
        (format!("dump --path={}", table.display()), format!("dump --path={}", blob.display()));
    let decoded = |words: &str| shell.run_on(&shell.path("none"), words, b"").stdout;
    let has_reference = |out: &[u8]| String::from_utf8_lossy(out).contains("[blob ref] file:");
    assert!(has_reference(&decoded(&format!("{table} --decode_blob_index"))));
    assert!(!has_reference(&decoded(&table)));
    assert!(shell.fails("dump --decode_blob_index").contains("--path"));
    let values = shell.ok(&format!("{raw} --dump_uncompressed_blobs --value_hex"));
    assert!(
        values.contains("Blob log footer:\n  Blob count       : 1\n")
            && values.contains("raw blob   : 76616C"),
        "{values}"
    );
    assert!(
        values.ends_with("Summary:\n  total records: 1\n  total key size: 1\n  total blob size: 3"),
        "{values}"
    );
    let files = shell.ok("dump_live_files");
    assert!(
        files.contains(".sst level:") && files.contains("MANIFEST-") && files.contains(".blob"),
        "{files}"
    );
    let listed = shell.ok("list_live_files_metadata --sort_by_filename");
    assert!(
        listed.starts_with("Live SST and Blob Files:")
            && listed.contains(" : level 0, column family 'default'")
    );
    assert!(shell.ok("file_checksum_dump").ends_with("Print SST file checksum information finished"));
}

#[test]
fn a_wal_with_transactions_in_two_phases_is_shown_and_compatible() {
    let shell = Shell::new();
    let builder = outcrop::Db::builder(shell.path("db")).create_if_missing(true);
    let db = outcrop::TransactionDb::open_with(builder, outcrop::TransactionDbOptions::default()).unwrap();
    let [mut committed, mut rolled_back, mut waiting] = ["c", "r", "w"].map(|name| {
        let mut txn = db.begin();
        txn.set_name(name).unwrap();
        txn.put(name, "v").unwrap();
        txn.prepare().unwrap();
        txn
    });
    committed.commit().unwrap();
    rolled_back.rollback().unwrap();
    waiting.set_name("again").unwrap_err();
    drop((committed, rolled_back, waiting, db));
    let wal = shell.files(".log").into_iter().next().unwrap();
    let dumped = shell.ok(&format!("dump_wal --walfile={} --header --print_value", wal.display()));
    let batches: Vec<&str> =
        dumped.lines().skip(1).map(|line| line.splitn(5, ',').nth(4).unwrap().trim()).collect();
    assert_eq!(
        batches,
        [
            "BEGIN_PREPARE(false) PUT(0) : 0x63 : 0x76 END_PREPARE(0x63)",
            "BEGIN_PREPARE(false) PUT(0) : 0x72 : 0x76 END_PREPARE(0x72)",
            "BEGIN_PREPARE(false) PUT(0) : 0x77 : 0x76 END_PREPARE(0x77)",
            "COMMIT(0x63)",
            "ROLLBACK(0x72)",
        ]
    );
    let judged = shell.ok("checkcompat --with=6.29.5,11.8.1");
    assert!(!judged.contains("two-phase"), "{judged}");
}

#[test]
fn column_families_are_made_and_dropped() {
    let shell = Shell::new();
    shell.ok("put cf1_1 1 --create_if_missing");
    shell.fails("get cf1_1 --column_family=two");
    assert_eq!(shell.ok("create_column_family two"), "OK");
    assert_eq!(shell.ok("put cf2_1 1 --column_family=two"), "OK");
    assert_eq!(shell.ok("dump --column_family=two --try_load_options"), "cf2_1 ==> 1\nKeys in range: 1");
    assert!(shell.ok("list_column_families").ends_with("{default, two}"));
    assert_eq!(shell.ok("drop_column_family two"), "OK");
    shell.fails("drop_column_family two");
    assert_eq!(shell.ok("compact --from=a --to=z"), "");
    assert_eq!(shell.ok("approxsize --from=a --to=b"), "0");
    assert_eq!(shell.ok("get_property rocksdb.estimate-num-keys"), "rocksdb.estimate-num-keys: 1");
}

#[test]
fn options_that_no_version_has_are_refused_unless_ignored() {
    let shell = Shell::new();
    shell.ok("put a 1 --create_if_missing");
    for path in std::fs::read_dir(shell.path("db")).unwrap().map(|entry| entry.unwrap().path()) {
        if path.to_string_lossy().contains("OPTIONS-") {
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, text.replace("[DBOptions]\n", "[DBOptions]\n  of_tomorrow=1\n")).unwrap();
        }
    }
    for words in ["get a", "put a 2", "get a --ignore_unknown_options=false"] {
        let complaint = shell.fails(words);
        assert!(
            complaint.contains("of_tomorrow") && complaint.contains("--ignore_unknown_options"),
            "{complaint}"
        );
    }
    assert_eq!(shell.ok("get a --ignore_unknown_options"), "1");
}

#[test]
fn sequence_numbers_are_not_written_into_files_without_a_word() {
    let shell = Shell::new();
    let table = shell.path("external.sst");
    shell.ok("put a 1 --create_if_missing");
    let made =
        shell.run_on(&shell.path("db"), &format!("write_extern_sst {}", table.display()), b"a ==> 2\n");
    assert!(made.status.success(), "{made:?}");
    let ingest = format!("ingest_extern_sst {} --write_global_seqno", table.display());
    assert!(shell.fails(&format!("{ingest} --allow_global_seqno=false")).contains("not allowed"));
    let taken = shell.run_on(&shell.path("db"), &ingest, b"");
    let said = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(taken.status.success() && said.contains("Warning: not writing global_seqno"), "{said}");
    assert_eq!(shell.ok("get a"), "2");
}

#[test]
fn queries_are_answered_line_by_line() {
    let shell = Shell::new();
    shell.ok("put a 1 --create_if_missing");
    let lines = b"help\nput b 2\nget a\nget c\ncount\ncount --from=b\ndelete a\nput\nwhat\n";
    assert_eq!(
        shell.ok_on(&shell.path("db"), "query", lines),
        "get <key>\nput <key> <value>\ndelete <key>\ncount [--from=<start_key>] [--to=<end_key>]\nput b => 2 succeeded\n\
         a ==> 1\nget c status: NotFound: \n2\n1\ndelete a succeeded\nput gets invalid arguments\nUnknown command what"
    );
}

#[test]
fn a_damaged_database_is_repaired_and_a_table_taken_out() {
    let shell = Shell::new();
    shell.ok("batchput a 1 b 2 --create_if_missing");
    shell.ok("put c 3");
    std::fs::remove_file(shell.path("db/CURRENT")).unwrap();
    shell.fails("scan");
    let repaired = shell.run_on(&shell.path("db"), "--verbose repair", b"");
    assert_eq!(String::from_utf8_lossy(&repaired.stdout), "OK\n", "{repaired:?}");
    assert!(String::from_utf8_lossy(&repaired.stderr).contains("**** Repaired rocksdb"), "{repaired:?}");
    assert_eq!(shell.ok("scan"), "a ==> 1\nb ==> 2\nc ==> 3");
    shell.ok("compact");
    let table = shell.files(".sst").pop().unwrap();
    let number = table.file_stem().unwrap().to_str().unwrap().trim_start_matches('0').to_string();
    assert!(shell.fails("unsafe_remove_sst_file 999").contains("not found"));
    assert_eq!(shell.ok(&format!("unsafe_remove_sst_file {number}")), "OK");
    assert_eq!(shell.ok("scan"), "");
}

/// Two tables on two levels, and a byte of the newer one's second block changed.
fn damaged_shell() -> Shell {
    let shell = Shell::new();
    let rows = |value: &str, rows: std::ops::Range<u32>| {
        rows.map(|row| format!("k{row:04} ==> {value}{row}\n")).collect::<String>()
    };
    let small = "load --create_if_missing --block_size=512 --compression_type=no";
    shell.ok_on(&shell.path("db"), &format!("{small} --compact"), rows("old", 0..400).as_bytes());
    shell.ok_on(
        &shell.path("db"),
        &small.replace(" --create_if_missing", ""),
        rows("new", 0..200).as_bytes(),
    );
    shell.ok("put z last");
    let mut tables = shell.files(".sst");
    tables.sort();
    let mut bytes = std::fs::read(tables.last().unwrap()).unwrap();
    bytes[800] ^= 1;
    std::fs::write(tables.last().unwrap(), bytes).unwrap();
    shell
}

#[test]
fn the_whole_of_a_damaged_database_is_salvaged_and_doubtful_keys_are_named() {
    let shell = damaged_shell();
    let contents = |shell: &Shell| {
        let mut files: Vec<_> =
            std::fs::read_dir(shell.path("db")).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    let before = contents(&shell);
    assert!(shell.fails("salvage").contains("--to=DIR"));
    assert!(shell.fails(&format!("salvage --to={}", shell.path("db").display())).contains("outside"));
    let new = shell.path("new");
    let text = shell.ok(&format!("salvage --to={}", new.display()));
    assert!(contents(&shell) == before, "the damaged database is changed");
    assert!(text.starts_with("MANIFEST: read whole\ncolumn family default: "), "{text}");
    assert!(text.contains("\ndoubtful: keys \"k0") && text.contains("checksum mismatch"), "{text}");
    assert!(text.ends_with("have an older value, or be deleted ones"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let scan = shell.ok_on(&new, "scan", b"");
    assert_eq!(scan.lines().count(), 401, "{scan}");
    assert!(scan.contains("k0199 ==> new199") && scan.ends_with("z ==> last"), "{scan}");
    assert_eq!(shell.ok_on(&new, "checkconsistency", b""), "OK");
    let full = shell.run_on(&shell.path("db"), &format!("salvage --to={}", new.display()), b"");
    assert!(!full.status.success() && String::from_utf8_lossy(&full.stderr).contains("empty"), "{full:?}");

    let json = shell.ok(&format!("salvage --json --to={}", shell.path("newer").display()));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["whole"], &json["manifest"]["used"]), (&false.into(), &"whole".into()), "{json}");
    let range = &json["doubtful"][0];
    assert!(range["begin"].as_str().unwrap().starts_with("0x6B30"), "{json}");
    assert_eq!(
        (&range["column_family"], &json["doubtful"].as_array().unwrap().len()),
        (&"default".into(), &1)
    );
    assert_eq!(json["damaged"][0]["level"], range["level"]);
    let whole = shell.run_on(&new, &format!("salvage --json --to={}", shell.path("third").display()), b"");
    let whole: serde_json::Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_eq!(whole["whole"], true, "{whole}");
}

#[test]
fn commands_that_are_not_here_give_their_advice_whatever_their_flags() {
    let shell = Shell::new();
    for (words, advice) in [
        ("reduce_levels --new_levels=2 --print_old_levels", "num_levels"),
        (
            "change_compaction_style --old_compaction_style=0 --new_compaction_style=1",
            "compaction_style, after",
        ),
        ("update_manifest --update_temperatures", "temperatures"),
        ("compaction_progress_dump --path=x --no_such", "not resumed"),
    ] {
        let complaint = shell.fails(words);
        assert!(complaint.contains("is not supported: ") && complaint.contains(advice), "{complaint}");
    }
    assert!(shell.fails("put a 1 --new_levels=2").contains("--new_levels"));
    assert!(shell.ok("--help").contains("put KEY VALUE"));
}
