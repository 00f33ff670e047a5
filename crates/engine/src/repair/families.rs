//! Which column families there are: as the MANIFEST has them, else as tables name them.

use super::scan::Opened;
use super::structure::Structure;
use crate::column_family::{ColumnFamily, ColumnFamilyDescriptor, DEFAULT_COLUMN_FAMILY};
use crate::in_force::{
    add_default_cache, check_column_family_options, resolve_objects, sanitize_column_family,
};
use crate::state::CfState;
use outcrop_base::{CfId, Comparator, Error, Result};
use outcrop_manifest::{FileNumber, Version};
use outcrop_memtable::MemTablePool;
use outcrop_options::DbOptions;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A column family that is repaired.
pub struct Family {
    /// With its options and objects.
    pub cf: Arc<ColumnFamily>,
    /// It needs no older WAL; 0: not known.
    pub log_number: FileNumber,
}

/// Whose column families they are to be.
pub struct Named<'a> {
    /// Those that the caller knows, "default" among them.
    pub descriptors: &'a [ColumnFamilyDescriptor],
    /// The settings that others get; `None`: they are refused.
    pub unknown: Option<&'a ColumnFamilyDescriptor>,
    /// Settings of the database.
    pub options: &'a DbOptions,
    /// Where their memtables come from.
    pub pool: &'a Arc<MemTablePool>,
}

/// A table that is in no column family, and why.
pub type Refused = (FileNumber, String);

/// The column families, by id. Tables that can belong to none leave `opened`, with the reason.
///
/// # Errors
/// InvalidArgument for column families that are not named, or are in another order of keys; NotSupported for user timestamps.
pub fn resolve(
    structure: &Structure,
    opened: &mut Vec<Opened>,
    named: &Named<'_>,
) -> Result<(BTreeMap<CfId, Family>, Vec<Refused>)> {
    let mut refused = Vec::new();
    let names = names(structure, opened, &mut refused);
    let mut families = BTreeMap::new();
    let mut unnamed = Vec::new();
    for (id, name) in names {
        let known = structure.families.get(&id);
        let of_tables = opened.iter().find(|table| table.family == id).map(|table| table.comparator.clone());
        let order = known.and_then(|known| known.comparator.clone()).or(of_tables);
        let Some(descriptor) = descriptor(&name, order.as_deref(), named)? else {
            unnamed.push(name);
            continue;
        };
        let empty = Arc::new(Version::empty(descriptor.options.num_levels as usize));
        let cf = CfState::new(id, &descriptor, empty, FileNumber::NONE, 1, named.pool).cf;
        let of_all = structure.min_log_number_to_keep;
        let log_number = known.map_or(of_all, |known| known.log_number.max(of_all));
        families.insert(id, Family { cf, log_number });
    }
    if !unnamed.is_empty() {
        return Err(Error::invalid_argument(format!("Column families not opened: {}", unnamed.join(", "))));
    }
    opened.retain(|table| {
        let order = families[&table.family].cf.comparator.name();
        let fits = order == table.comparator;
        if !fits {
            refused.push((table.number, format!("its comparator is {}, not {order}", table.comparator)));
        }
        fits
    });
    Ok((families, refused))
}

/// Names by id. Of two names for one id that of the newer table counts, of two ids with one name the higher.
fn names(
    structure: &Structure,
    opened: &mut Vec<Opened>,
    refused: &mut Vec<Refused>,
) -> BTreeMap<CfId, String> {
    let mut names: BTreeMap<CfId, String> =
        structure.families.iter().map(|(id, family)| (*id, family.name.clone())).collect();
    names.entry(CfId(0)).or_insert_with(|| DEFAULT_COLUMN_FAMILY.to_string());
    opened.sort_by_key(|table| std::cmp::Reverse(table.number));
    for table in opened.iter() {
        if let Some(name) = &table.family_name {
            names.entry(table.family).or_insert_with(|| name.clone());
        }
    }
    let mut taken: BTreeMap<String, CfId> = BTreeMap::new();
    for (id, name) in &names {
        // The MANIFEST's are of one moment; beside it, the id that was given last.
        let known = |id: &CfId| structure.families.contains_key(id);
        match taken.get(name) {
            Some(other) if known(other) && !known(id) => {}
            _ => drop(taken.insert(name.clone(), *id)),
        }
    }
    names.retain(|id, name| taken.get(name) == Some(id));
    opened.retain(|table| {
        let reason = match (names.get(&table.family), &table.family_name) {
            (None, name) => {
                let name = name.as_deref().unwrap_or_default();
                format!("its column family {} ({name}) is not there any more", table.family)
            }
            (Some(name), Some(other)) if name != other => {
                format!("it says that column family {} is {other}, which is {name}", table.family)
            }
            _ => return true,
        };
        refused.push((table.number, reason));
        false
    });
    names
}

/// The settings that the column family is opened with; `None` if it is not named and others are refused.
fn descriptor(name: &str, order: Option<&str>, named: &Named<'_>) -> Result<Option<ColumnFamilyDescriptor>> {
    if let Some(order) = order.filter(|order| order.ends_with(".u64ts")) {
        return Err(Error::not_supported(format!("user-defined timestamps (comparator {order})")));
    }
    let given = named.descriptors.iter().find(|descriptor| descriptor.name == name);
    let descriptor = match (given, named.unknown) {
        (Some(given), _) => given.clone(),
        (None, None) => return Ok(None),
        (None, Some(template)) => {
            let mut descriptor = ColumnFamilyDescriptor { name: name.to_string(), ..template.clone() };
            let built_in = order.filter(|order| descriptor.parts.comparator.name() != *order);
            if let Some(comparator) = built_in.and_then(Comparator::by_name) {
                (descriptor.options.comparator, descriptor.parts.comparator) = (None, comparator);
            }
            add_default_cache(&mut descriptor);
            resolve_objects(&mut descriptor)?;
            check_column_family_options(&descriptor, named.options)?;
            sanitize_column_family(&mut descriptor, named.options);
            descriptor
        }
    };
    let mine = descriptor.parts.comparator.name().to_string();
    if let Some(stored) = order.filter(|order| *order != mine) {
        return Err(Error::invalid_argument(format!(
            "column family {name}: {mine}: does not match existing comparator {stored}"
        )));
    }
    Ok(Some(descriptor))
}
