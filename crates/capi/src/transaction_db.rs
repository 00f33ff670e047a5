//! `rocksdb_transactiondb_*` and `rocksdb_optimistictransactiondb_*`: databases with transactions.
//!
//! Each has a `rocksdb_t` of its database inside, which what is read, flushed and asked goes to.

use crate::batch::rocksdb_writebatch_t;
use crate::checkpoint::{rocksdb_checkpoint_object_create, rocksdb_checkpoint_t};
use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::iterator::rocksdb_iterator_t;
use crate::maintenance::*;
use crate::memory::{Errptr, give_back, hand_out, report, slice, text};
use crate::opening::{Families, Opened, open_by};
use crate::options::rocksdb_options_t;
use crate::read_options::{rocksdb_readoptions_t, rocksdb_snapshot_t};
use crate::reads::*;
use crate::transaction_options::{
    rocksdb_optimistictransactiondb_options_t, rocksdb_transactiondb_options_t,
};
use crate::write_options::{rocksdb_flushoptions_t, rocksdb_flushwaloptions_t, rocksdb_writeoptions_t};
use libc::{c_char, c_int, c_uchar, size_t};
use outcrop::{OptimisticTransactionDb, TransactionDb};

/// Begins with the plain database, as RocksDB's object does: callers hand a pointer to it to functions of `rocksdb_t`, such as
/// the crate `rocksdb` to `rocksdb_drop_column_family`.
#[repr(C)]
pub struct rocksdb_transactiondb_t {
    pub(crate) base: rocksdb_t,
    pub db: TransactionDb,
}

/// Begins with the plain database, too.
#[repr(C)]
pub struct rocksdb_optimistictransactiondb_t {
    pub(crate) base: rocksdb_t,
    pub(crate) db: OptimisticTransactionDb,
}

impl Opened for rocksdb_transactiondb_t {
    fn database(&self) -> &rocksdb_t {
        &self.base
    }
}

impl From<TransactionDb> for rocksdb_transactiondb_t {
    fn from(db: TransactionDb) -> rocksdb_transactiondb_t {
        rocksdb_transactiondb_t { base: db.db().clone().into(), db }
    }
}

impl Opened for rocksdb_optimistictransactiondb_t {
    fn database(&self) -> &rocksdb_t {
        &self.base
    }
}

impl From<OptimisticTransactionDb> for rocksdb_optimistictransactiondb_t {
    fn from(db: OptimisticTransactionDb) -> rocksdb_optimistictransactiondb_t {
        rocksdb_optimistictransactiondb_t { base: db.db().clone().into(), db }
    }
}

unsafe fn open_pessimistic(
    options: *const rocksdb_options_t,
    transactions: *const rocksdb_transactiondb_options_t,
    name: *const c_char,
    families: Option<Families>,
    errptr: Errptr,
) -> *mut rocksdb_transactiondb_t {
    // SAFETY: the caller's contract.
    unsafe {
        open_by(options, name, families, errptr, |builder| {
            TransactionDb::open_with(builder, (*transactions).get()?)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_open(
    options: *const rocksdb_options_t,
    transactions: *const rocksdb_transactiondb_options_t,
    name: *const c_char,
    errptr: Errptr,
) -> *mut rocksdb_transactiondb_t {
    boundary!(errptr, open_pessimistic(options, transactions, name, None, errptr))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_open_column_families(
    options: *const rocksdb_options_t,
    transactions: *const rocksdb_transactiondb_options_t,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    cf_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: Errptr,
) -> *mut rocksdb_transactiondb_t {
    boundary!(errptr, {
        let families = Families { count, names, options: cf_options, handles };
        open_pessimistic(options, transactions, name, Some(families), errptr)
    })
}

unsafe fn open_optimistic(
    options: *const rocksdb_options_t,
    transactions: *const rocksdb_optimistictransactiondb_options_t,
    name: *const c_char,
    families: Option<Families>,
    errptr: Errptr,
) -> *mut rocksdb_optimistictransactiondb_t {
    // SAFETY: the caller's contract.
    unsafe {
        open_by(options, name, families, errptr, |builder| {
            let given = transactions.as_ref().map(|transactions| transactions.get()).transpose()?;
            OptimisticTransactionDb::open_with(builder, given.unwrap_or_default())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_open(
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: Errptr,
) -> *mut rocksdb_optimistictransactiondb_t {
    boundary!(errptr, open_optimistic(options, std::ptr::null(), name, None, errptr))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_open_with_otxn_db_options(
    options: *const rocksdb_options_t,
    transactions: *const rocksdb_optimistictransactiondb_options_t,
    name: *const c_char,
    errptr: Errptr,
) -> *mut rocksdb_optimistictransactiondb_t {
    boundary!(errptr, open_optimistic(options, transactions, name, None, errptr))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_open_column_families(
    options: *const rocksdb_options_t,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    cf_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: Errptr,
) -> *mut rocksdb_optimistictransactiondb_t {
    boundary!(errptr, {
        let families = Families { count, names, options: cf_options, handles };
        open_optimistic(options, std::ptr::null(), name, Some(families), errptr)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
    options: *const rocksdb_options_t,
    transactions: *const rocksdb_optimistictransactiondb_options_t,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    cf_options: *const *const rocksdb_options_t,
    handles: *mut *mut rocksdb_column_family_handle_t,
    errptr: Errptr,
) -> *mut rocksdb_optimistictransactiondb_t {
    boundary!(errptr, {
        let families = Families { count, names, options: cf_options, handles };
        open_optimistic(options, transactions, name, Some(families), errptr)
    })
}

/// Of both kinds: closing, the database alone, checkpoints, properties.
macro_rules! of_both {
    ($($object:ident $close:ident $base:ident $close_base:ident $checkpoint:ident $property:ident $property_int:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $close(db: *mut $object) {
            boundary!(give_back(db))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $base(db: *mut $object) -> *mut rocksdb_t {
            boundary!(hand_out(rocksdb_t::from((*db).base.0.clone())))
        }

        /// The database stays open.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $close_base(base: *mut rocksdb_t) {
            boundary!(give_back(base))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $checkpoint(db: *mut $object, errptr: Errptr) -> *mut rocksdb_checkpoint_t {
            boundary!(errptr, rocksdb_checkpoint_object_create(&raw mut (*db).base, errptr))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $property(db: *mut $object, name: *const c_char) -> *mut c_char {
            boundary!(rocksdb_property_value(&raw mut (*db).base, name))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $property_int(db: *mut $object, name: *const c_char, out: *mut u64) -> c_int {
            boundary!(rocksdb_property_int(&raw mut (*db).base, name, out))
        }
    )*};
}

of_both! {
    rocksdb_transactiondb_t rocksdb_transactiondb_close rocksdb_transactiondb_get_base_db
        rocksdb_transactiondb_close_base_db rocksdb_transactiondb_checkpoint_object_create
        rocksdb_transactiondb_property_value rocksdb_transactiondb_property_int;
    rocksdb_optimistictransactiondb_t rocksdb_optimistictransactiondb_close
        rocksdb_optimistictransactiondb_get_base_db rocksdb_optimistictransactiondb_close_base_db
        rocksdb_optimistictransactiondb_checkpoint_object_create
        rocksdb_optimistictransactiondb_property_value rocksdb_optimistictransactiondb_property_int;
}

type Cf = *mut rocksdb_column_family_handle_t;
type Ro = *const rocksdb_readoptions_t;
type Wo = *const rocksdb_writeoptions_t;
type Text = *const c_char;
type Texts = *const *const c_char;
type Lens = *const size_t;
type Values = *mut *mut c_char;

/// Functions that do what those of the plain database do.
macro_rules! of_base {
    ($($name:ident $base:ident $args:tt $(@ $errptr:ident)? $(-> $ret:ty)?;)*) => {
        $(one_of_base!($name $base $args $(@ $errptr)? $(-> $ret)?);)*
    };
}

macro_rules! one_of_base {
    ($name:ident $base:ident ($($arg:ident: $type:ty),*) @ $errptr:ident $(-> $ret:ty)?) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            db: *mut rocksdb_transactiondb_t $(, $arg: $type)*, $errptr: Errptr
        ) $(-> $ret)? {
            boundary!($errptr, $base(&raw mut (*db).base $(, $arg)*, $errptr))
        }
    };
    ($name:ident $base:ident ($($arg:ident: $type:ty),*) $(-> $ret:ty)?) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(db: *mut rocksdb_transactiondb_t $(, $arg: $type)*) $(-> $ret)? {
            boundary!($base(&raw mut (*db).base $(, $arg)*))
        }
    };
}

of_base! {
    rocksdb_transactiondb_create_snapshot rocksdb_create_snapshot() -> *const rocksdb_snapshot_t;
    rocksdb_transactiondb_release_snapshot rocksdb_release_snapshot(snapshot: *const rocksdb_snapshot_t);
    rocksdb_transactiondb_get rocksdb_get(o: Ro, key: Text, klen: size_t, vlen: *mut size_t) @ errptr -> *mut c_char;
    rocksdb_transactiondb_get_cf rocksdb_get_cf(o: Ro, cf: Cf, key: Text, klen: size_t, vlen: *mut size_t)
        @ errptr -> *mut c_char;
    rocksdb_transactiondb_get_pinned rocksdb_get_pinned(o: Ro, key: Text, klen: size_t)
        @ errptr -> *mut rocksdb_pinnableslice_t;
    rocksdb_transactiondb_get_pinned_cf rocksdb_get_pinned_cf(o: Ro, cf: Cf, key: Text, klen: size_t)
        @ errptr -> *mut rocksdb_pinnableslice_t;
    rocksdb_transactiondb_multi_get rocksdb_multi_get(
        o: Ro, count: size_t, keys: Texts, key_lens: Lens, values: Values, value_lens: *mut size_t, errs: Values);
    rocksdb_transactiondb_multi_get_cf rocksdb_multi_get_cf(
        o: Ro, cfs: *const *const rocksdb_column_family_handle_t, count: size_t, keys: Texts, key_lens: Lens,
        values: Values, value_lens: *mut size_t, errs: Values);
    rocksdb_transactiondb_create_iterator rocksdb_create_iterator(o: Ro) -> *mut rocksdb_iterator_t;
    rocksdb_transactiondb_create_iterator_cf rocksdb_create_iterator_cf(o: Ro, cf: Cf) -> *mut rocksdb_iterator_t;
    rocksdb_transactiondb_flush rocksdb_flush(o: *const rocksdb_flushoptions_t) @ errptr;
    rocksdb_transactiondb_flush_cf rocksdb_flush_cf(o: *const rocksdb_flushoptions_t, cf: Cf) @ errptr;
    rocksdb_transactiondb_flush_cfs rocksdb_flush_cfs(o: *const rocksdb_flushoptions_t, cfs: *mut Cf, count: c_int)
        @ errptr;
    rocksdb_transactiondb_flush_wal rocksdb_flush_wal(sync: c_uchar) @ errptr;
    rocksdb_transactiondb_flush_wal_with_options rocksdb_flush_wal_with_options(o: *const rocksdb_flushwaloptions_t)
        @ errptr;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_create_column_family(
    db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_options_t,
    name: *const c_char,
    errptr: Errptr,
) -> *mut rocksdb_column_family_handle_t {
    boundary!(errptr, {
        let made = (*options).descriptor(&text(name)).and_then(|cf| (*db).db.create_column_family(&cf));
        report(errptr, made).map_or(std::ptr::null_mut(), |cf| hand_out(rocksdb_column_family_handle_t(cf)))
    })
}

/// Writes outside of transactions.
macro_rules! writes {
    ($($name:ident $method:ident ($($cf:ident)? | key $(, $value:ident)?);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            db: *mut rocksdb_transactiondb_t,
            options: Wo,
            $($cf: Cf,)?
            key: Text,
            klen: size_t,
            $($value: Text, vlen: size_t,)?
            errptr: Errptr,
        ) {
            boundary!(errptr, {
                let db = &*db;
                let cf = db.base.0.default_column_family();
                $(let _ = cf; let cf = &(*$cf).0;)?
                let written = (*options)
                    .get()
                    .and_then(|options| db.db.$method(cf, slice(key, klen) $(, slice($value, vlen))?, options));
                report(errptr, written);
            })
        }
    )*};
}

writes! {
    rocksdb_transactiondb_put put_cf_with(| key, value);
    rocksdb_transactiondb_put_cf put_cf_with(cf_given | key, value);
    rocksdb_transactiondb_merge merge_cf_with(| key, value);
    rocksdb_transactiondb_merge_cf merge_cf_with(cf_given | key, value);
    rocksdb_transactiondb_delete delete_cf_with(| key);
    rocksdb_transactiondb_delete_cf delete_cf_with(cf_given | key);
}

/// Batches outside of transactions.
macro_rules! batches {
    ($($name:ident $object:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            db: *mut $object,
            options: Wo,
            batch: *mut rocksdb_writebatch_t,
            errptr: Errptr,
        ) {
            boundary!(errptr, {
                let batch = &mut *batch;
                let written = (*options).get().and_then(|options| {
                    batch.check()?;
                    (*db).db.write_with(&mut batch.batch, options)
                });
                report(errptr, written);
            })
        }
    )*};
}

batches! {
    rocksdb_transactiondb_write rocksdb_transactiondb_t;
    rocksdb_optimistictransactiondb_write rocksdb_optimistictransactiondb_t;
}
