//! The batch that single puts and deletes are encoded in: one per thread, used again and again.

use super::codec::WriteBatch;
use outcrop_base::Result;
use std::cell::Cell;

thread_local! {
    static SCRATCH: Cell<Option<WriteBatch>> = const { Cell::new(None) };
}

/// Scratch batches that grew beyond this are not kept.
const SCRATCH_KEPT_BYTES: usize = 1 << 20;

/// Runs `fill` on this thread's scratch batch, then `commit`.
pub fn with_scratch_batch(
    fill: impl FnOnce(&mut WriteBatch),
    commit: impl FnOnce(&mut WriteBatch) -> Result<()>,
) -> Result<()> {
    let mut batch = SCRATCH.take().unwrap_or_default();
    batch.clear();
    fill(&mut batch);
    let result = commit(&mut batch);
    if batch.size_bytes() <= SCRATCH_KEPT_BYTES {
        SCRATCH.set(Some(batch));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_uses_one_batch_again_and_keeps_no_large_one() {
        let capacity = |bytes: usize| {
            with_scratch_batch(|batch| batch.put_id(CfId::DEFAULT, b"k", &vec![0; bytes]), |_| Ok(()))
                .unwrap();
            SCRATCH.take().map(|batch| {
                let kept = batch.size_bytes();
                SCRATCH.set(Some(batch));
                kept
            })
        };
        assert!(capacity(10).is_some_and(|kept| kept < 100));
        assert_eq!(capacity(SCRATCH_KEPT_BYTES), None);
    }

    #[test]
    fn a_batch_inside_another_is_another() {
        let outer = |batch: &mut WriteBatch| {
            batch.put_id(CfId::DEFAULT, b"outer", b"1");
            with_scratch_batch(|inner| assert!(inner.is_empty()), |_| Ok(())).unwrap();
        };
        with_scratch_batch(outer, |batch| {
            assert_eq!(batch.count(), 1);
            Ok(())
        })
        .unwrap();
    }
}
