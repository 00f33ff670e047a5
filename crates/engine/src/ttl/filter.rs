//! Compaction filters that drop what has expired, and ask the application's about the rest.
//!
//! Source: RocksDB `utilities/ttl/db_ttl_impl.cc`, `TtlCompactionFilter` and its factory.

use super::stamp::{STAMP_LEN, Ttl, stamped};
use outcrop_base::{CompactionFilter, CompactionFilterFactory, FilterContext, FilterDecision};
use outcrop_env::Clock;
use std::sync::Arc;

/// Drops what has expired; the application's filter, if there is one, sees the rest without stamps.
pub struct TtlFilter {
    pub ttl: Arc<Ttl>,
    pub clock: Arc<dyn Clock>,
    pub user: Option<Arc<dyn CompactionFilter>>,
}

impl CompactionFilter for TtlFilter {
    fn name(&self) -> &str {
        "TtlCompactionFilter"
    }

    fn filter(&self, level: usize, key: &[u8], stored: &[u8]) -> FilterDecision {
        if self.ttl.has_expired(stored, &*self.clock) {
            return FilterDecision::Remove;
        }
        // A value without a stamp was not written by this layer: it is not the filter's to judge.
        let (Some(user), Some((value, stamp))) = (&self.user, stored.split_last_chunk::<STAMP_LEN>()) else {
            return FilterDecision::Keep;
        };
        as_old(user.filter(level, key, value), stamp)
    }

    /// Operands do not expire until they are merged.
    fn filter_merge_operand(&self, level: usize, key: &[u8], stored: &[u8]) -> FilterDecision {
        let (Some(user), Some((operand, stamp))) = (&self.user, stored.split_last_chunk::<STAMP_LEN>())
        else {
            return FilterDecision::Keep;
        };
        as_old(user.filter_merge_operand(level, key, operand), stamp)
    }
}

/// The decision of the application's filter: a value that it makes is as old as what it was made of.
fn as_old(decision: FilterDecision, stamp: &[u8; STAMP_LEN]) -> FilterDecision {
    match decision {
        FilterDecision::ChangeValue(value) => FilterDecision::ChangeValue(stamped(&value, *stamp)),
        decision => decision,
    }
}

/// Makes a [`TtlFilter`] for each compaction, around what the application's factory makes.
pub struct TtlFilterFactory {
    pub ttl: Arc<Ttl>,
    pub clock: Arc<dyn Clock>,
    pub user: Option<Arc<dyn CompactionFilterFactory>>,
}

impl CompactionFilterFactory for TtlFilterFactory {
    fn name(&self) -> &str {
        "TtlCompactionFilterFactory"
    }

    fn create(&self, context: FilterContext) -> Option<Arc<dyn CompactionFilter>> {
        let user = self.user.as_ref().and_then(|factory| factory.create(context));
        Some(Arc::new(TtlFilter { ttl: self.ttl.clone(), clock: self.clock.clone(), user }))
    }
}
