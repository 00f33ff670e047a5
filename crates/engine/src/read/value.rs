//! The values that reads return, which pin their memory, and the columns of entities.

use outcrop_base::{Result, wide_columns};
use outcrop_cache::Pinned;
use std::ops::Deref;

/// The columns of a wide-column entity, by name.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put_entity("7", &[("name", "ann"), ("born", "1970")])?;
/// let columns = db.get_entity("7")?.expect("it was put");
/// let names: Vec<&[u8]> = columns.iter().map(|(name, _)| name).collect();
/// assert_eq!(names, [b"born", b"name"]);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WideColumns {
    columns: Vec<(Vec<u8>, Vec<u8>)>,
}

impl WideColumns {
    /// A plain value: the column with the empty name.
    pub(crate) fn plain(value: &[u8]) -> WideColumns {
        WideColumns { columns: vec![(Vec::new(), value.to_vec())] }
    }

    /// Decodes an entity that has its values in it.
    pub(crate) fn decode(entity: &[u8]) -> Result<WideColumns> {
        let columns = wide_columns::decode(entity)?;
        let columns = columns.iter().map(|column| (column.name.to_vec(), column.value.to_vec())).collect();
        Ok(WideColumns { columns })
    }

    /// (name, value) of each, in order of the names; the default column has the empty name and comes first.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.columns.iter().map(|(name, value)| (&name[..], &value[..]))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// A value that was read. It stays valid, and the block holding it stays in memory, until dropped.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "one")?;
/// let value = db.get("a")?.expect("it was put");
/// assert_eq!(value, b"one");
/// assert!(value.starts_with(b"o")); // It is a slice.
/// let own: Vec<u8> = value.into_vec();
/// # assert_eq!(own, b"one");
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct PinnedValue(Storage);

#[derive(Clone)]
enum Storage {
    /// Inside a cached block.
    Block { block: Pinned, start: u32, len: u32 },
    /// A copy.
    Owned(Vec<u8>),
}

impl PinnedValue {
    /// A copied or computed value.
    pub(crate) fn owned(value: Vec<u8>) -> PinnedValue {
        PinnedValue(Storage::Owned(value))
    }

    /// `value`, which lies inside `block`.
    #[inline]
    pub(crate) fn in_block(block: &Pinned, value: &[u8]) -> PinnedValue {
        let start = value.as_ptr() as usize - block.as_ptr() as usize;
        debug_assert!(start + value.len() <= block.len());
        PinnedValue(Storage::Block { block: block.clone(), start: start as u32, len: value.len() as u32 })
    }

    /// `part` of the value, which keeps the same memory.
    pub(crate) fn part(&self, part: &[u8]) -> PinnedValue {
        if part.is_empty() {
            return PinnedValue::owned(Vec::new());
        }
        let start = part.as_ptr() as usize - self.as_ptr() as usize;
        debug_assert!(start + part.len() <= self.len());
        match &self.0 {
            Storage::Block { block, start: outer, .. } => PinnedValue(Storage::Block {
                block: block.clone(),
                start: outer + start as u32,
                len: part.len() as u32,
            }),
            Storage::Owned(value) => PinnedValue::owned(value[start..start + part.len()].to_vec()),
        }
    }

    /// Its length, for counters: without a look at where it lies.
    #[inline(always)]
    pub(crate) fn size_bytes(&self) -> usize {
        match &self.0 {
            Storage::Block { len, .. } => *len as usize,
            Storage::Owned(value) => value.len(),
        }
    }

    /// The value as a buffer of its own.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Storage::Owned(value) => value,
            Storage::Block { .. } => self.to_vec(),
        }
    }
}

impl AsRef<[u8]> for PinnedValue {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Deref for PinnedValue {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Storage::Block { block, start, len } => &block[*start as usize..(*start + *len) as usize],
            Storage::Owned(value) => value,
        }
    }
}

impl std::fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

impl PartialEq<[u8]> for PinnedValue {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl PartialEq<&[u8]> for PinnedValue {
    fn eq(&self, other: &&[u8]) -> bool {
        **self == **other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for PinnedValue {
    fn eq(&self, other: &&[u8; N]) -> bool {
        **self == other[..]
    }
}

impl PartialEq for PinnedValue {
    fn eq(&self, other: &PinnedValue) -> bool {
        **self == **other
    }
}

impl Eq for PinnedValue {}

/// The result of a lookup.
pub(crate) enum FoundValue {
    /// A value.
    Plain(PinnedValue),
    /// A set of columns, encoded; some may be in blob files.
    Entity(PinnedValue),
}

impl FoundValue {
    /// The value, or the default column, which `fetch` gives if it is in a blob file.
    #[inline]
    pub(crate) fn value(self, fetch: impl FnOnce(&[u8]) -> Result<PinnedValue>) -> Result<PinnedValue> {
        match self {
            FoundValue::Plain(value) => Ok(value),
            FoundValue::Entity(entity) => match wide_columns::default_column(&entity)? {
                Some(column) if column.in_blob => fetch(column.value),
                Some(column) => Ok(entity.part(column.value)),
                None => Ok(PinnedValue::owned(Vec::new())),
            },
        }
    }
}
