//! The parts that every operation on a directory of backups works with: where it is, how it is used, and how
//! bytes are moved.

use super::copy::{Mover, ProgressMeter};
use super::directory::Layout;
use super::options::BackupEngineOptions;
use outcrop_base::{Error, Result};
use outcrop_env::{Env, RateLimiter, RateLimiterOptions};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The fixed surroundings of one engine.
pub struct Store {
    /// Its settings.
    pub options: BackupEngineOptions,
    /// Where its files are.
    pub layout: Layout,
    /// Where databases are.
    pub db_env: Env,
    /// Where backups are.
    pub env: Env,
    /// Set: backups end.
    pub stop: Arc<AtomicBool>,
    backup_limit: Option<Arc<RateLimiter>>,
    restore_limit: Option<Arc<RateLimiter>>,
}

impl Store {
    /// Under `options`, for databases in `db_env`.
    ///
    /// # Errors
    /// InvalidArgument, NotSupported for a `schema_version` that is none.
    pub fn new(options: BackupEngineOptions, db_env: &Env) -> Result<Store> {
        match options.schema_version {
            0 => return Err(Error::invalid_argument("BackupEngineOptions::schema_version must be >= 1")),
            1 | 2 => {}
            _ => {
                return Err(Error::not_supported(
                    "Only BackupEngineOptions::schema_version <= 2 is supported",
                ));
            }
        }
        let env = options.backup_env.clone().unwrap_or_else(|| db_env.clone());
        let limit = |limiter: &Option<Arc<RateLimiter>>, bytes_per_second: u64| {
            let options = RateLimiterOptions { bytes_per_second, ..RateLimiterOptions::default() };
            let own = || RateLimiter::with_clock(options, env.clock.clone());
            limiter.clone().or_else(|| (bytes_per_second > 0).then(|| Arc::new(own())))
        };
        Ok(Store {
            backup_limit: limit(&options.backup_rate_limiter, options.backup_rate_limit),
            restore_limit: limit(&options.restore_rate_limiter, options.restore_rate_limit),
            layout: Layout { root: options.backup_dir.clone(), fs: env.fs.clone() },
            options,
            db_env: db_env.clone(),
            env,
            stop: Arc::default(),
        })
    }

    /// The directory that shared files go to.
    pub fn shared_dir(&self) -> Option<&'static str> {
        match (self.options.share_table_files, self.options.share_files_with_checksum) {
            (false, _) => None,
            (true, true) => Some("shared_checksum"),
            (true, false) => Some("shared"),
        }
    }

    /// Moves bytes for a backup.
    pub fn mover(&self, meter: Option<Arc<ProgressMeter>>) -> Mover {
        Mover {
            limit: self.backup_limit.clone(),
            buffer_bytes: self.options.io_buffer_size,
            stop: Some(self.stop.clone()),
            meter,
            sync: self.options.sync,
            statistics: None,
        }
    }

    /// Reads bytes of backups.
    pub fn reader(&self) -> Mover {
        Mover { stop: None, ..self.mover(None) }
    }

    /// Moves bytes for a restored database.
    pub fn restorer(&self) -> Mover {
        Mover { limit: self.restore_limit.clone(), ..self.reader() }
    }
}
