//! Options that one library stores and the other opens a database of transactions with.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, libraries};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_get_allow_2pc: fn(Object) -> c_uchar;
    rocksdb_options_destroy: fn(Object);
    rocksdb_create_default_env: fn() -> Object;
    rocksdb_env_destroy: fn(Object);
    rocksdb_load_latest_options: fn(Bytes, Object, bool, Object, *mut Object, *mut size_t, *mut *mut *mut c_char, *mut *mut Object, Errptr);
    rocksdb_load_latest_options_destroy: fn(Object, *mut *mut c_char, *mut Object, size_t);
    rocksdb_transactiondb_options_create: fn() -> Object;
    rocksdb_transactiondb_options_destroy: fn(Object);
    rocksdb_transactiondb_open: fn(Object, Object, Bytes, Errptr) -> Object;
    rocksdb_transactiondb_open_column_families: fn(Object, Object, Bytes, c_int, *const *mut c_char, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_transactiondb_close: fn(Object);
    rocksdb_column_family_handle_destroy: fn(Object);
    rocksdb_free: fn(*mut c_void);
}

impl Api {
    fn checked<T>(&self, call: impl FnOnce(Errptr) -> T) -> T {
        let mut error = null_mut();
        let answer = call(&mut error);
        // SAFETY: the library's own message.
        assert_eq!(unsafe { error_text(error, self.rocksdb_free) }, None);
        answer
    }

    fn create(&self, path: &CString) {
        // SAFETY: objects live until the database is closed.
        unsafe {
            let options = (self.rocksdb_options_create)();
            (self.rocksdb_options_set_create_if_missing)(options, 1);
            let settings = (self.rocksdb_transactiondb_options_create)();
            let db = self.checked(|e| (self.rocksdb_transactiondb_open)(options, settings, path.as_ptr(), e));
            (self.rocksdb_transactiondb_close)(db);
            (self.rocksdb_transactiondb_options_destroy)(settings);
            (self.rocksdb_options_destroy)(options);
        }
    }

    /// Opens the database with the options that it stores; gives its `allow_2pc`.
    fn open_as_stored(&self, path: &CString) -> c_uchar {
        // SAFETY: as above; the lists are as long as the library says.
        unsafe {
            let env = (self.rocksdb_create_default_env)();
            let (mut options, mut count, mut names, mut families) = (null_mut(), 0, null_mut(), null_mut());
            let path = path.as_ptr();
            self.checked(|e| {
                (self.rocksdb_load_latest_options)(
                    path,
                    env,
                    false,
                    null_mut(),
                    &mut options,
                    &mut count,
                    &mut names,
                    &mut families,
                    e,
                )
            });
            let two_phase = (self.rocksdb_options_get_allow_2pc)(options);
            let settings = (self.rocksdb_transactiondb_options_create)();
            let mut handles = vec![null_mut(); count];
            let db = self.checked(|e| {
                (self.rocksdb_transactiondb_open_column_families)(
                    options,
                    settings,
                    path,
                    count as c_int,
                    names,
                    families,
                    handles.as_mut_ptr(),
                    e,
                )
            });
            handles.iter().for_each(|handle| (self.rocksdb_column_family_handle_destroy)(*handle));
            (self.rocksdb_transactiondb_close)(db);
            (self.rocksdb_transactiondb_options_destroy)(settings);
            (self.rocksdb_load_latest_options_destroy)(options, names, families, count);
            (self.rocksdb_env_destroy)(env);
            two_phase
        }
    }
}

#[test]
fn a_database_of_transactions_opens_with_the_options_that_either_library_stored() {
    let apis: Vec<Api> = libraries().iter().map(|(_, path)| Api::load(path)).collect();
    for (writer, reader) in apis.iter().flat_map(|writer| apis.iter().map(move |reader| (writer, reader))) {
        let dir = tempfile::tempdir().unwrap();
        let path = c_path(&dir.path().join("db"));
        writer.create(&path);
        assert_eq!(reader.open_as_stored(&path), 1);
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}
