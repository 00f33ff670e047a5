//! Checksums of whole files: made as files are written, kept wherever a file goes, and compared.

use crate::harness::{creating, descriptor};
use outcrop::*;
use outcrop_base::checksum::crc32c;
use outcrop_env::OpenWrite;
use std::path::{Path, PathBuf};

fn with_checksums() -> DbOptions {
    DbOptions { file_checksum_gen_factory: Some(FileChecksumGenFactory::Crc32c), ..creating() }
}

fn open(env: &Env, path: &str, options: DbOptions) -> Db {
    let blobs =
        ColumnFamilyOptions { enable_blob_files: true, min_blob_size: 500, ..ColumnFamilyOptions::default() };
    Db::builder(path)
        .options(options)
        .env(env.clone())
        .column_family(descriptor("default", &blobs))
        .open()
        .unwrap()
}

fn fill(db: &Db, name: &str) {
    for i in 0..300_usize {
        db.put(format!("{name}{i:04}"), vec![b'v'; i * 4]).unwrap();
    }
    db.flush().unwrap();
}

/// Every table and blob file, and the checksum the MANIFEST has of it.
fn recorded(db: &Db) -> Vec<(PathBuf, String, Vec<u8>)> {
    let options = LiveFilesOptions { include_checksum_info: true, ..LiveFilesOptions::default() };
    let files = db.live_files_storage_info(&options).unwrap().files.into_iter();
    let data = files.filter(|file| matches!(file.kind, StorageFileKind::Table | StorageFileKind::Blob));
    data.map(|file| (file.directory.join(&file.name), file.checksum_function, file.checksum)).collect()
}

/// The checksums are those of the files, and as many have one as there are files.
fn assert_recorded(env: &Env, db: &Db) {
    let files = recorded(db);
    assert!(!files.is_empty());
    for (path, function, checksum) in files {
        let bytes = env.fs.read_all(&path).unwrap();
        assert_eq!(function, "FileChecksumCrc32c", "{}", path.display());
        assert_eq!(checksum, crc32c(&bytes).to_be_bytes(), "{}", path.display());
    }
    db.verify_file_checksums().unwrap();
}

/// Changes one byte of a file.
fn damage(env: &Env, path: &Path, at: usize) {
    let mut bytes = env.fs.read_all(path).unwrap();
    bytes[at] ^= 1;
    let mut file = env.fs.create(path, OpenWrite::default()).unwrap();
    file.append(&bytes).unwrap();
    file.close().unwrap();
}

#[test]
fn flushes_and_compactions_record_checksums_that_stay() {
    let env = Env::memory();
    let db = open(&env, "/db", with_checksums());
    fill(&db, "a");
    fill(&db, "b");
    assert_recorded(&env, &db);
    db.compact_range(None, None).unwrap();
    assert_recorded(&env, &db);
    fill(&db, "a");
    db.compact_range(None, None).unwrap();
    assert_recorded(&env, &db);
    assert!(recorded(&db).iter().any(|(path, ..)| path.extension().is_some_and(|e| e == "blob")));
    assert!(db.live_files().iter().all(|file| file.file_checksum.is_some()));
    db.close().unwrap();

    // In the MANIFEST, and the option in the OPTIONS file.
    let stored = Db::builder("/db").env(env.clone()).stored_options().unwrap();
    let db = stored.open().unwrap();
    assert_recorded(&env, &db);
    db.close().unwrap();

    // Without the option new files have none, and the old ones keep theirs.
    let db = open(&env, "/db", creating());
    fill(&db, "c");
    let with = recorded(&db).iter().filter(|(_, function, _)| function != "Unknown").count();
    assert!(with > 0 && with < recorded(&db).len(), "{with} of {}", recorded(&db).len());
    let error = db.verify_file_checksums().unwrap_err();
    assert!(error.to_string().contains("file_checksum_gen_factory is null"), "{error}");
    db.close().unwrap();
    // Files without one are passed over.
    open(&env, "/db", with_checksums()).verify_file_checksums().unwrap();
}

#[test]
fn damage_anywhere_in_a_file_is_found() {
    let env = Env::memory();
    let db = open(&env, "/db", with_checksums());
    fill(&db, "a");
    for (path, ..) in recorded(&db) {
        let len = env.fs.file_size(&path).unwrap() as usize;
        for at in [0, len / 2, len - 1] {
            damage(&env, &path, at);
            let error = db.verify_file_checksums().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            let text = error.to_string();
            let named = text.contains(&format!("{} file checksum mismatch", path.display()));
            assert!(named, "{text}");
            damage(&env, &path, at);
        }
    }
    db.verify_file_checksums().unwrap();
}

#[test]
fn ingested_files_come_with_their_checksum_or_are_given_one() {
    let env = Env::memory();
    env.fs.create_dir_all(Path::new("/out")).unwrap();
    let db = open(&env, "/db", with_checksums());
    let family = descriptor("default", &ColumnFamilyOptions::default());
    let write = |name: &str, options: &DbOptions| {
        let path = format!("/out/{name}");
        let mut writer = SstFileWriter::create_with(&path, &env, &family, options).unwrap();
        writer.put(name.as_bytes(), b"1").unwrap();
        writer.finish().unwrap()
    };
    let cf = db.default_column_family().clone();
    let plain = write("a", &creating());
    assert_eq!(plain.file_checksum, None);
    let summed = write("b", &with_checksums());
    let bytes = env.fs.read_all(&summed.path).unwrap();
    assert_eq!(summed.file_checksum.as_ref().unwrap().checksum, crc32c(&bytes).to_be_bytes());
    let options = IngestExternalFileOptions::default();
    db.ingest_external_files(&[&plain.path]).unwrap();
    db.ingest_written_files(&cf, &[summed], &options).unwrap();
    assert_recorded(&env, &db);

    // One that does not have its checksum stays out, unless it is to be believed: then it is found later.
    let trusting = IngestExternalFileOptions { verify_file_checksum: false, ..options };
    let mut wrong = write("c", &with_checksums());
    wrong.file_checksum.as_mut().unwrap().checksum[0] ^= 1;
    let error = db.ingest_written_files(&cf, std::slice::from_ref(&wrong), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(db.get("c").unwrap(), None);
    db.ingest_written_files(&cf, &[wrong], &trusting).unwrap();
    assert_eq!(db.verify_file_checksums().unwrap_err().kind(), ErrorKind::Corruption);
    let mut strange = write("d", &with_checksums());
    strange.file_checksum.as_mut().unwrap().function = "SHA256".to_string();
    for options in [options, trusting] {
        let refused = db.ingest_written_files(&cf, std::slice::from_ref(&strange), &options).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn imported_files_keep_their_checksum_or_are_given_one() {
    let env = Env::memory();
    for (name, options) in [("with", with_checksums()), ("without", creating())] {
        let source = Db::builder(format!("/{name}")).options(options).env(env.clone()).open().unwrap();
        fill(&source, "a");
        let target = format!("/export-{name}");
        let exported = source.export_column_family(source.default_column_family(), &target).unwrap();
        assert_eq!(exported.files[0].file_checksum.is_some(), name == "with");
        let db = open(&env, &format!("/target-{name}"), with_checksums());
        db.create_column_family_with_import("in", ImportColumnFamilyOptions::default(), &[&exported])
            .unwrap();
        assert_recorded(&env, &db);
    }
}

#[test]
fn a_backup_compares_what_it_copies() {
    let env = Env::memory();
    let db = open(&env, "/db", with_checksums());
    fill(&db, "a");
    let table = recorded(&db).into_iter().find(|(path, ..)| path.extension().is_some_and(|e| e == "sst"));
    let (table, ..) = table.unwrap();
    let back_up = |dir: &str| {
        let options = BackupEngineOptions::new(dir);
        BackupEngine::open(options, &env)?.create_backup(&db)
    };
    back_up("/backups").unwrap();
    damage(&env, &table, 10);
    let error = back_up("/others").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("MANIFEST"), "{error}");
}
