//! `RateLimiter`, and `ConcurrentTaskLimiter`, which nothing here is limited by: options refuse it.

use crate::env::Env;
use crate::glue::{Answer, handle, object};
use jni_sys::{jint, jlong, jobject};
use outcrop::{IoKind, IoPriority, RateLimiter};
use outcrop_capi::rocksdb_ratelimiter_t;

pub(crate) fn rate<'a>(limiter: jlong) -> &'a RateLimiter {
    &object::<rocksdb_ratelimiter_t>(limiter).0
}

pub(crate) fn set_rate(limiter: jlong, bytes_per_second: jlong) -> Answer<()> {
    rate(limiter).set_bytes_per_second(u64::try_from(bytes_per_second).unwrap_or(0));
    Ok(())
}

/// As RocksJava: with all that has no priority.
pub(crate) fn request(limiter: jlong, bytes: jlong) -> Answer<()> {
    rate(limiter).request(u64::try_from(bytes).unwrap_or(0), IoPriority::User, IoKind::Write);
    Ok(())
}

/// Summed over priorities.
pub(crate) fn total(limiter: jlong, of: impl Fn(&RateLimiter, IoPriority) -> u64) -> Answer<u64> {
    let all = [IoPriority::Low, IoPriority::Mid, IoPriority::High, IoPriority::User];
    Ok(all.into_iter().map(|priority| of(rate(limiter), priority)).sum())
}

/// `ConcurrentTaskLimiterImpl`.
pub(crate) struct TaskLimiter {
    pub(crate) name: String,
    /// Below 0: no limit.
    pub(crate) max: jint,
}

pub(crate) fn task_limiter(env: Env, name: jobject, max: jint) -> Answer<jlong> {
    Ok(handle(TaskLimiter { name: env.text(name)?, max }))
}
