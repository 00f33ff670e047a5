//! Which tickers and histograms a request to the rate limiter changes: those of the database whose thread asked.
//!
//! Source: RocksDB `util/rate_limiter.cc`, `GenericRateLimiter::RequestImpl`.

use outcrop_env::{Granted, IoKind, PaceObserver};
use outcrop_monitor::{HistogramKind, Monitor, Ticker, Watch};

/// Counts for one database.
pub struct LimiterCounts(pub Monitor);

impl PaceObserver for LimiterCounts {
    fn granted(&self, granted: Granted) {
        let watching = self.0.begin();
        let Some(counted) = Watch::from(&watching).stats() else { return };
        let (requests, bytes, delayed, waited, wait) = match granted.kind {
            IoKind::Read => (
                Ticker::RateLimiterRequestsRead,
                Ticker::RateLimiterBytesRead,
                Ticker::RateLimiterDelayedRequestsRead,
                Ticker::RateLimiterTotalWaitMicrosRead,
                HistogramKind::RateLimiterWaitMicrosRead,
            ),
            IoKind::Write => (
                Ticker::RateLimiterRequestsWrite,
                Ticker::RateLimiterBytesWrite,
                Ticker::RateLimiterDelayedRequestsWrite,
                Ticker::RateLimiterTotalWaitMicrosWrite,
                HistogramKind::RateLimiterWaitMicrosWrite,
            ),
        };
        counted.count(requests, 1);
        counted.count(bytes, granted.bytes);
        counted.count(Ticker::NumberRateLimiterDrains, granted.drains);
        if let Some(micros) = granted.waited_micros {
            counted.count(delayed, 1);
            counted.count(waited, micros);
            counted.record(wait, micros);
        }
    }
}
