//! Options of an engine, made from texts and the objects that a column family needs.

use crate::call::{Outcome, c_string, call, with_error};
use crate::case::{Family, Merge};
use crate::library::{Api, Object};
use crate::merge;
use std::ptr::null_mut;

/// Options of a database and one column family.
pub struct Options<'a> {
    api: &'a Api,
    /// The object, as long as this lives.
    pub(crate) object: Object,
}

impl<'a> Options<'a> {
    /// Default options changed by each of `settings`, `name=value`.
    pub fn new(api: &'a Api, settings: &[String]) -> Outcome<Options<'a>> {
        // SAFETY: live objects; the string is NUL-terminated; the result replaces the options in place.
        unsafe {
            let options = Options { api, object: call!(api, rocksdb_options_create()) };
            for setting in merge_table_options(settings) {
                let text = c_string(&setting)?;
                with_error(api, |e| {
                    call!(
                        api,
                        rocksdb_get_options_from_string(options.object, text.as_ptr(), options.object, e)
                    );
                    Ok(())
                })
                .map_err(|error| format!("option {setting}: {error}"))?;
            }
            Ok(options)
        }
    }

    /// The same, with the objects that a column family needs.
    pub fn for_family(api: &'a Api, settings: &[String], family: &Family) -> Outcome<Options<'a>> {
        let mut settings = settings.to_vec();
        if family.reverse {
            settings.push("comparator=rocksdb.ReverseBytewiseComparator".into());
        }
        let options = Options::new(api, &settings)?;
        // SAFETY: live objects.
        unsafe {
            match family.merge {
                Merge::None => {}
                Merge::Add => call!(api, rocksdb_options_set_uint64add_merge_operator(options.object)),
                Merge::Append => {
                    let operator = call!(
                        api,
                        rocksdb_mergeoperator_create(
                            null_mut(),
                            merge::destroy,
                            merge::full_merge,
                            merge::partial_merge,
                            merge::delete_value,
                            merge::name
                        )
                    );
                    call!(api, rocksdb_options_set_merge_operator(options.object, operator));
                }
            }
        }
        Ok(options)
    }

    /// Missing databases and column families are created.
    pub fn create_missing(&self) -> Outcome<()> {
        // SAFETY: live objects.
        unsafe {
            call!(self.api, rocksdb_options_set_create_if_missing(self.object, 1));
            call!(self.api, rocksdb_options_set_create_missing_column_families(self.object, 1));
        }
        Ok(())
    }
}

impl Drop for Options<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.api.rocksdb_options_destroy {
            // SAFETY: ours, and destroyed once.
            unsafe { destroy(self.object) }
        }
    }
}

/// Settings of the table, marked by `table.`, as the one option that they are for RocksDB.
fn merge_table_options(settings: &[String]) -> Vec<String> {
    let (table, mut all): (Vec<&String>, Vec<String>) = (
        settings.iter().filter(|setting| setting.starts_with("table.")).collect(),
        settings.iter().filter(|setting| !setting.starts_with("table.")).cloned().collect(),
    );
    if !table.is_empty() {
        let inner: String = table.iter().map(|setting| format!("{};", &setting["table.".len()..])).collect();
        all.push(format!("block_based_table_factory={{{inner}}}"));
    }
    all
}
