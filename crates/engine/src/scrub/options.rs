//! Options, figures and findings of the scrubber, as the application sees them.

use outcrop_base::{Error, Result};
use std::path::PathBuf;
use std::time::Duration;

/// How files are verified in the background: [`DbBuilder::scrub`](crate::DbBuilder::scrub), [`Db::set_scrub`](crate::Db::set_scrub).
///
/// ```
/// # use outcrop::{Db, Env};
/// use outcrop::ScrubOptions;
/// use std::time::Duration;
///
/// let scrub = ScrubOptions { bytes_per_second: 4 << 20, period: Duration::from_secs(7 * 24 * 3600) };
/// let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).scrub(scrub).open()?;
/// assert_eq!(db.scrub_options(), Some(scrub));
/// db.set_scrub(None)?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubOptions {
    /// Bytes that are read in a second at most; more than 0. A rate limiter of the database that limits reads counts them too, with the
    /// lowest priority.
    pub bytes_per_second: u64,
    /// A file is read again when it was read so long ago. If the rate is too low for that, it is read as soon as its turn comes: the file
    /// that was not read for longest is next.
    pub period: Duration,
}

impl Default for ScrubOptions {
    /// 1 MiB in a second, each file every thirty days.
    fn default() -> Self {
        ScrubOptions { bytes_per_second: 1 << 20, period: Duration::from_secs(30 * 24 * 3600) }
    }
}

impl ScrubOptions {
    /// InvalidArgument for a rate that never comes to anything.
    pub(crate) fn check(&self) -> Result<()> {
        match self.bytes_per_second {
            0 => Err(Error::invalid_argument(
                "ScrubOptions::bytes_per_second is 0: give None in place of options to switch it off",
            )),
            _ => Ok(()),
        }
    }
}

/// Figures of the scrubber since the database was opened: [`Db::scrub_progress`](crate::Db::scrub_progress).
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// assert_eq!(db.scrub_progress().files_verified, 0);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubProgress {
    /// Files that were read to their end, each as often as it was.
    pub files_verified: u64,
    /// Bytes that were read.
    pub bytes_verified: u64,
    /// Files that were found to be damaged, each as often as it was.
    pub damaged_files: u64,
    /// Files that could not be read to their end for another reason than damage.
    pub failed_files: u64,
    /// Files that have not been read yet, as of the last time a file was chosen.
    pub files_to_verify: u64,
}

/// Damage that was found ([`EventListener::damage_found`](crate::EventListener::damage_found)), or a file that cannot be read
/// ([`EventListener::unreadable_file_found`](crate::EventListener::unreadable_file_found)).
///
/// ```
/// fn lost(damage: &outcrop::DamageInfo) -> String {
///     format!("{}: restore {}", damage.cf_name, damage.path.display())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct DamageInfo {
    /// Name of the column family.
    pub cf_name: String,
    /// The file.
    pub path: PathBuf,
    /// Its number.
    pub number: u64,
    /// The level of a table; none of a blob file.
    pub level: Option<usize>,
    /// The first and the last user key of a table; none of a blob file.
    pub range: Option<(Vec<u8>, Vec<u8>)>,
    /// The first damage in it: Corruption naming the file and the offset; or why it cannot be read.
    pub error: Error,
}
