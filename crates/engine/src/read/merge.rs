//! The operands of one key that a read or a compaction meets, and their merge.
//!
//! ```text
//! newest first (get, forward, compaction): push_older        oldest first (backward): push_newer
//! base: nothing, a value, an entity's default column    ->   full_merge(base, oldest operand .. newest operand)
//! ```

use crate::column_family::ColumnFamily;
use outcrop_base::{Error, MergeOperator, Result, ValueType, wide_columns};
use std::borrow::Cow;
use std::collections::VecDeque;

/// The value that operands apply to.
pub enum Base<'b> {
    /// Nothing: the key had no value.
    None,
    /// A value.
    Plain(Cow<'b, [u8]>),
    /// The default column of an encoded entity, which has its values in it.
    Entity(Cow<'b, [u8]>),
}

/// The result of a merge.
pub enum Merged {
    /// A value.
    Plain(Vec<u8>),
    /// An encoded entity.
    Entity(Vec<u8>),
}

/// The operands of one key met so far.
///
/// ```
/// # use outcrop::*;
/// # use std::sync::Arc;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let options = ColumnFamilyOptions { merge_operator: Some("stringappend".into()), ..ColumnFamilyOptions::default() };
/// # let db = builder.default_column_family(options).open()?;
/// let family = || Family::from(db.default_column_family());
/// let batch = IndexedBatch::default();
/// batch.merge_cf(family(), "fruit", "apple")?;
/// batch.merge_cf(family(), "fruit", "pear")?;
/// let BatchValue::Merging(operands) = batch.look_up_cf(family(), "fruit")? else { panic!("nothing is below") };
/// assert_eq!(operands.newest_first().collect::<Vec<_>>(), [b"pear".as_slice(), b"apple"]);
/// assert_eq!(family().merge(b"fruit", Some(b"fig"), &operands)?, b"fig,apple,pear");
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeOperands {
    oldest_first: VecDeque<Vec<u8>>,
}

impl MergeOperands {
    /// True if none was met.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.oldest_first.is_empty()
    }

    /// How many were met.
    pub(crate) fn len(&self) -> usize {
        self.oldest_first.len()
    }

    /// Adds one that was written before all others.
    pub(crate) fn push_older(&mut self, operand: impl Into<Vec<u8>>) {
        self.oldest_first.push_front(operand.into());
    }

    /// Adds one that was written after all others.
    pub(crate) fn push_newer(&mut self, operand: &[u8]) {
        self.oldest_first.push_back(operand.to_vec());
    }

    /// Forgets all: something newer hides them.
    pub(crate) fn clear(&mut self) {
        self.oldest_first.clear();
    }

    /// Newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &[u8]> {
        self.oldest_first.iter().rev().map(Vec::as_slice)
    }

    /// Applies the operands to `base`, the last value of `key` before them.
    ///
    /// # Errors
    /// InvalidArgument without an operator; Corruption if the operator refuses. The texts are RocksDB's.
    pub(crate) fn apply(
        &self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
        base: &Base<'_>,
    ) -> Result<Merged> {
        let operator = operator.ok_or_else(missing_operator)?;
        let merge = |base: Option<&[u8]>| {
            let merged = operator.full_merge(key, base, &self.slices());
            merged.ok_or_else(|| Error::corruption("Merge operator failed"))
        };
        Ok(match base {
            Base::None => Merged::Plain(merge(None)?),
            Base::Plain(value) => Merged::Plain(merge(Some(value))?),
            Base::Entity(entity) => Merged::Entity(merge_entity(entity, merge)?),
        })
    }

    /// Puts one operand in the place of all, if there are several and the operator can do that without their base.
    pub(crate) fn combine(&mut self, operator: &dyn MergeOperator, key: &[u8]) {
        if self.oldest_first.len() > 1
            && let Some(operand) = operator.partial_merge(key, &self.slices())
        {
            self.oldest_first = VecDeque::from([operand]);
        }
    }

    /// Oldest first, as operators take them.
    fn slices(&self) -> Vec<&[u8]> {
        self.oldest_first.iter().map(Vec::as_slice).collect()
    }
}

/// `entity` with `merge` applied to its default column.
fn merge_entity(entity: &[u8], merge: impl FnOnce(Option<&[u8]>) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let columns = wide_columns::decode(entity)?;
    let default =
        columns.first().filter(|column| column.name.is_empty()).map_or(&[][..], |column| column.value);
    let merged = merge(Some(default))?;
    let mut pairs: Vec<(&[u8], &[u8])> = vec![(b"", &merged)];
    pairs.extend(columns.iter().filter(|column| !column.name.is_empty()).map(|c| (c.name, c.value)));
    let mut out = Vec::new();
    wide_columns::encode(&pairs, &mut out)?;
    Ok(out)
}

/// The error of a merge without an operator. Nothing is lost: with the operator the key can be read.
///
/// Source: RocksDB `db/merge_helper.cc`.
fn missing_operator() -> Error {
    Error::invalid_argument("merge_operator is not properly initialized.")
}

/// The same, met by an iterator. Source: RocksDB `db/db_iter.cc`.
pub fn missing_operator_of_iterator() -> Error {
    Error::invalid_argument("merge_operator_ must be set.")
}

/// The operator of a column family.
pub fn operator_of(cf: &ColumnFamily) -> Option<&dyn MergeOperator> {
    cf.merge_operator.as_deref()
}

/// The error for an entry type this engine does not implement.
pub fn unsupported_type(value_type: ValueType) -> Error {
    Error::not_supported(format!("a table entry has type {value_type:?}, which this engine cannot read"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::builtin_merge;
    use std::sync::Arc;

    fn append() -> Arc<dyn MergeOperator> {
        builtin_merge::by_name("stringappend").expect("it is built in")
    }

    fn plain(operands: &MergeOperands, base: &Base<'_>) -> String {
        match operands.apply(Some(&*append()), b"k", base).unwrap() {
            Merged::Plain(value) => String::from_utf8(value).unwrap(),
            Merged::Entity(_) => panic!("a value has no columns"),
        }
    }

    #[test]
    fn operands_are_applied_in_the_order_of_their_writing_however_they_were_met() {
        let (mut down, mut up) = (MergeOperands::default(), MergeOperands::default());
        for operand in [b"3", b"2", b"1"] {
            down.push_older(operand);
        }
        for operand in [b"1", b"2", b"3"] {
            up.push_newer(operand);
        }
        let base = Base::Plain(Cow::Borrowed(b"0"));
        assert_eq!((plain(&down, &base), plain(&up, &base)), ("0,1,2,3".into(), "0,1,2,3".into()));
        assert_eq!(plain(&down, &Base::None), "1,2,3");
        assert!(down.newest_first().eq([b"3", b"2", b"1"]));
        down.clear();
        assert!(down.is_empty());
    }

    #[test]
    fn an_entity_keeps_its_other_columns() {
        let mut entity = Vec::new();
        wide_columns::encode(&[(b"", b"0"), (b"c", b"x")], &mut entity).unwrap();
        let mut operands = MergeOperands::default();
        operands.push_older(b"1");
        let merged = operands.apply(Some(&*append()), b"k", &Base::Entity(Cow::Owned(entity))).unwrap();
        let Merged::Entity(merged) = merged else { panic!("it is one") };
        let columns = wide_columns::decode(&merged).unwrap();
        let columns: Vec<(&[u8], &[u8])> = columns.iter().map(|c| (c.name, c.value)).collect();
        assert_eq!(columns, [(&b""[..], &b"0,1"[..]), (b"c", b"x")]);
    }

    #[test]
    fn several_become_one_where_the_operator_can_do_that() {
        let mut operands = MergeOperands::default();
        operands.push_older(b"2");
        operands.combine(&*append(), b"k");
        assert!(operands.newest_first().eq([b"2"]), "one stays as it is");
        operands.push_older(b"1");
        operands.combine(&*append(), b"k");
        assert!(operands.newest_first().eq([b"1,2"]));
    }

    #[test]
    fn without_an_operator_nothing_is_applied() {
        let error = MergeOperands::default().apply(None, b"k", &Base::None).err().expect("refused");
        assert_eq!(error.to_string(), missing_operator().to_string());
    }
}
