//! Errors as reasons why something is not whole.

use crate::repair::damage::refuse_unless_damage;
use outcrop_base::Error;
use std::path::Path;

/// A text about a file that is named beside it.
pub fn without_path(path: &Path, text: &str) -> String {
    let named = format!("{}: ", path.display());
    let text = text.strip_prefix("Corruption: ").unwrap_or(text);
    text.strip_prefix(&named).unwrap_or(text).to_string()
}

/// True of errors that damage explains; a feature that this engine does not have is not told apart from it where a byte decides.
pub fn is_damage(error: &Error) -> bool {
    refuse_unless_damage(error).is_ok()
}
