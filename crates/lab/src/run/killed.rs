//! A process that does not outlive its owner.

use std::ops::{Deref, DerefMut};
use std::process::Child;

/// A child, killed and waited for when it is dropped; one that has ended is left as it is.
pub(super) struct KilledOnDrop(pub Child);

impl Deref for KilledOnDrop {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for KilledOnDrop {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::Command;

    #[test]
    fn nothing_is_left_of_what_is_dropped() {
        let running = KilledOnDrop(Command::new("sleep").arg("600").spawn().unwrap());
        let entry = PathBuf::from(format!("/proc/{}", running.id()));
        assert!(entry.exists());
        drop(running);
        assert!(!entry.exists(), "it was killed, and waited for");
        let mut ended = KilledOnDrop(Command::new("true").spawn().unwrap());
        assert!(ended.wait().unwrap().success());
    }
}
