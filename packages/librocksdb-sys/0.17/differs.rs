// Made by `REWRITE=1 cargo xtask declarations`; not to be changed by hand.
pub const rocksdb_total_metric_count: c_uint = 80;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct rocksdb_filelock_t {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct rocksdb_randomfile_t {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct rocksdb_seqfile_t {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct rocksdb_writablefile_t {
    _unused: [u8; 0],
}
unsafe extern "C" {
pub fn rocksdb_cache_create_hyper_clock_opts(_: *const rocksdb_hyper_clock_cache_options_t) -> *mut rocksdb_cache_t;
pub fn rocksdb_cache_create_lru_opts(_: *const rocksdb_lru_cache_options_t) -> *mut rocksdb_cache_t;
pub fn rocksdb_cache_get_capacity(cache: *const rocksdb_cache_t) -> usize;
pub fn rocksdb_cache_get_pinned_usage(cache: *const rocksdb_cache_t) -> usize;
pub fn rocksdb_cache_get_usage(cache: *const rocksdb_cache_t) -> usize;
pub fn rocksdb_enable_file_deletions(db: *mut rocksdb_t, errptr: *mut *mut c_char);
pub fn rocksdb_options_get_skip_checking_sst_file_sizes_on_db_open(opt: *mut rocksdb_options_t) -> c_uchar;
pub fn rocksdb_options_set_plain_table_factory(_: *mut rocksdb_options_t, _: u32, _: c_int, _: f64, _: usize, _: usize, _: c_char, _: c_uchar, _: c_uchar);
pub fn rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(opt: *mut rocksdb_options_t, val: c_uchar);
pub fn rocksdb_readoptions_set_managed(_: *mut rocksdb_readoptions_t, _: c_uchar);
pub fn rocksdb_slicetransform_create(state: *mut c_void, destructor: Option<unsafe extern "C" fn(*mut c_void)>, transform: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char>, in_domain: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar>, in_range: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar>, name: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>) -> *mut rocksdb_slicetransform_t;
pub fn rocksdb_writebatch_wi_create_from(rep: *const c_char, size: usize) -> *mut rocksdb_writebatch_wi_t;
}
