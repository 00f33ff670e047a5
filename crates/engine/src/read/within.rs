//! The prefix that a seek stays within.

use outcrop_base::PrefixExtractor;

/// A prefix, and how keys are asked for theirs.
pub struct Within<'p> {
    /// Gives a key's prefix.
    pub extractor: &'p PrefixExtractor,
    /// The prefix.
    pub prefix: &'p [u8],
}

impl Within<'_> {
    /// True if `user_key` has the prefix.
    pub fn has(&self, user_key: &[u8]) -> bool {
        self.extractor.transform(user_key) == Some(self.prefix)
    }
}
