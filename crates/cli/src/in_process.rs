//! Outcrop's own C functions, linked into this program, as a table for the load generator: the same contract
//! that another engine's library fills.

use outcrop_lab_load::RocksApi;

/// The table.
pub fn functions() -> RocksApi {
    macro_rules! address_of {
        ($($name:ident,)*) => {
            |name: &str| -> Option<*const ()> {
                $(if name == stringify!($name) {
                    return Some(outcrop_capi::$name as *const ());
                })*
                None
            }
        };
    }
    // SAFETY: outcrop-capi's functions have the signatures of RocksDB's header, and live as long as the program.
    unsafe { RocksApi::from_symbols(outcrop_lab_load::for_each_function!(address_of)) }
        .expect("outcrop-capi has every function the load generator needs")
}
