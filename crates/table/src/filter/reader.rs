//! The filter of an open table.
//!
//! A filter that is one block of hashes is asked by the hash a lookup has anyway, before anything else of the
//! table is touched. Old and partitioned filters need the key: the lookup itself asks them.
//!
//! Partitions are loaded when they are first asked. They are then held, or, if the table's meta blocks are
//! charged to the cache, live there.
//! Concurrency: immutable after opening, apart from partitions filled in once.

use super::FilterKind;
use crate::format::BlockHandle;
use crate::index::{IndexCoding, IndexEntries, IndexView};
use crate::reader::Reading;
use crate::source::{BlockSource, Meta, MetaRef};
use outcrop_base::keys::Trailer;
use outcrop_base::{Comparator, PrefixExtractor, Result};
use outcrop_cache::{Pinned, standalone};
use outcrop_monitor::Watch;
use std::sync::OnceLock;

/// The filter of an open table.
pub struct TableFilter {
    blocks: Blocks,
    /// Whole user keys are in it.
    whole_keys: bool,
    /// Hashes of whole keys decide.
    by_hash: bool,
    /// Prefixes by this extractor are in it.
    prefixes: Option<PrefixExtractor>,
}

enum Blocks {
    Full { handle: BlockHandle, kind: FilterKind, meta: Meta },
    Partitioned { index: Pinned, partitions: Vec<OnceLock<(FilterKind, Pinned)>>, charged: bool },
}

/// The keys that a filter holds.
pub struct FilterContents {
    /// Whole user keys.
    pub whole_keys: bool,
    /// Prefixes by this extractor.
    pub prefixes: Option<PrefixExtractor>,
}

/// Whether a filter's blocks count against the cache, and whether they stay there whatever they take.
#[derive(Clone, Copy)]
pub struct Residence {
    /// They do.
    pub charged: bool,
    /// They stay.
    pub insist: bool,
}

/// Asks a filter that is in the cache or must be loaded. Without it the lookup goes on to the data, where an error that matters shows
/// again.
#[inline(never)]
fn loaded_may_contain(
    source: &BlockSource,
    handle: BlockHandle,
    kind: FilterKind,
    hash: u64,
    reading: Reading<'_>,
) -> bool {
    source.load_meta(handle, true, reading).map_or(true, |block| kind.may_contain(&block, hash))
}

impl TableFilter {
    /// Opens the filter that is the block at `handle`.
    pub fn full(
        source: &BlockSource,
        handle: BlockHandle,
        contents: FilterContents,
        residence: Residence,
    ) -> Result<TableFilter> {
        let block = source
            .monitor
            .counted(|counting| source.load_meta(handle, residence.charged, counting.into()))?;
        let kind = FilterKind::of(&block);
        Ok(TableFilter {
            blocks: Blocks::Full { handle, kind, meta: source.keep(block, residence.insist) },
            by_hash: contents.whole_keys && !matches!(kind, FilterKind::Legacy { .. }),
            whole_keys: contents.whole_keys,
            prefixes: contents.prefixes,
        })
    }

    /// Opens the filter whose partitions the block at `handle` names.
    pub fn partitioned(
        source: &BlockSource,
        handle: BlockHandle,
        contents: FilterContents,
        residence: Residence,
        (coding, comparator): (IndexCoding, &Comparator),
    ) -> Result<TableFilter> {
        let watching = source.monitor.begin();
        let top = source.read_meta(handle, Watch::from(&watching))?;
        let mut entries = IndexEntries::default();
        // Values are handles alone, whatever the table's own index has.
        let coding = IndexCoding { has_first_key: false, ..coding };
        entries.add_block(&top, coding).map_err(|error| source.block_error(handle, &error))?;
        for partition in entries.handles() {
            source.stored_len(*partition)?;
        }
        let partitions = entries.handles().iter().map(|_| OnceLock::new()).collect();
        let user_keys = coding.key_is_user_key;
        let index = standalone(entries.frame_len(user_keys), |frame| {
            entries.write_frame(user_keys, comparator, frame);
        });
        Ok(TableFilter {
            blocks: Blocks::Partitioned { index, partitions, charged: residence.charged },
            by_hash: false,
            whole_keys: contents.whole_keys,
            prefixes: contents.prefixes,
        })
    }

    /// Asks for what [`TableFilter::may_contain_hash`] touches.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Blocks::Full { kind, meta: Meta::Held(block, _), .. } = &self.blocks
            && let Some(offset) = kind.offset(hash)
        {
            outcrop_env::prefetch(block[offset..].as_ptr());
        }
    }

    /// False if no key with this hash is in the table, as far as hashes tell.
    #[inline(always)]
    pub fn may_contain_hash(&self, source: &BlockSource, hash: u64, reading: Reading<'_>) -> bool {
        match &self.blocks {
            Blocks::Full { kind, meta: Meta::Held(block, _), .. } if self.by_hash => {
                kind.may_contain(block, hash)
            }
            Blocks::Full { handle, kind, meta: Meta::Cached } if self.by_hash => {
                loaded_may_contain(source, *handle, *kind, hash, reading)
            }
            _ => true,
        }
    }

    /// True if hashes do not tell what the key itself does.
    #[inline]
    pub fn wants_key(&self) -> bool {
        !self.by_hash
    }

    /// False if the user key is not in the table; `None` if the filter cannot be asked about it.
    pub fn may_contain_key(
        &self,
        source: &BlockSource,
        comparator: &Comparator,
        user_key: &[u8],
        reading: Reading<'_>,
    ) -> Option<bool> {
        self.may_contain_row(source, comparator, (user_key, user_key), reading)
    }

    /// The same of `key`, which is stored as `place`.
    pub fn may_contain_row(
        &self,
        source: &BlockSource,
        comparator: &Comparator,
        (place, key): (&[u8], &[u8]),
        reading: Reading<'_>,
    ) -> Option<bool> {
        let entry = match self.whole_keys {
            true => key,
            false => self.prefixes.as_ref()?.transform(key)?,
        };
        Some(self.ask(source, comparator, (place, entry), reading))
    }

    /// False if no key with this prefix by `extractor` is in the table; `None` if the filter cannot be asked about it.
    pub fn may_contain_prefix(
        &self,
        source: &BlockSource,
        comparator: &Comparator,
        (extractor, prefix): (&PrefixExtractor, &[u8]),
        reading: Reading<'_>,
    ) -> Option<bool> {
        // Where keys with a prefix begin, and so which partition knows it, is clear in bytewise order only.
        let findable = matches!(self.blocks, Blocks::Full { .. }) || comparator.is_bytewise();
        let can_be_asked = self.prefixes.as_ref() == Some(extractor) && findable;
        can_be_asked.then(|| self.ask(source, comparator, (prefix, prefix), reading))
    }

    /// True if it holds whole keys.
    pub fn has_whole_keys(&self) -> bool {
        self.whole_keys
    }

    /// Asks the block responsible for `place` about `entry`; a block that cannot be had excludes nothing.
    fn ask(
        &self,
        source: &BlockSource,
        comparator: &Comparator,
        (place, entry): (&[u8], &[u8]),
        reading: Reading<'_>,
    ) -> bool {
        match &self.blocks {
            Blocks::Full { handle, kind, meta } => {
                let block = match meta {
                    Meta::Held(block, _) => MetaRef::Held(block),
                    Meta::Cached => match source.load_meta(*handle, true, reading) {
                        Ok(block) => MetaRef::Taken(block),
                        Err(_) => return true,
                    },
                };
                kind.may_contain_key(&block, entry)
            }
            Blocks::Partitioned { index, partitions, charged } => {
                let view = IndexView::new(index);
                let Some(last) = view.len().checked_sub(1) else { return true };
                let number = view.find(comparator, place, Trailer::MAX).min(last);
                let handle = view.handle(number);
                if *charged && source.cache.is_some() {
                    return source
                        .load_meta(handle, true, reading)
                        .map_or(true, |block| FilterKind::of(&block).may_contain_key(&block, entry));
                }
                if let Some((kind, block)) = partitions[number].get() {
                    return kind.may_contain_key(block, entry);
                }
                let Ok(block) = source.load_meta(handle, false, reading) else { return true };
                let (kind, block) = partitions[number].get_or_init(|| (FilterKind::of(&block), block));
                kind.may_contain_key(block, entry)
            }
        }
    }

    /// Bytes held outside the cache.
    pub fn memory_usage(&self) -> usize {
        match &self.blocks {
            Blocks::Full { meta, .. } => meta.memory_usage(),
            Blocks::Partitioned { index, partitions, .. } => {
                let held = partitions.iter().filter_map(OnceLock::get).map(|(_, block)| block.len());
                index.len() + held.sum::<usize>()
            }
        }
    }

    /// Gives back what the cache promised. Called once, when the table is closed.
    pub fn end_hold(&self, source: &BlockSource) {
        if let Blocks::Full { meta, .. } = &self.blocks {
            source.end_hold(meta);
        }
    }
}
