//! A file whose appends something sees first: a rate limiter, a checksum.

use crate::{RetiredWindow, WriteFile, WriteTimes};
use outcrop_base::Result;
use std::path::Path;
use std::sync::Arc;

/// `file`, of which `see` gets all bytes before they are appended.
pub fn observed(file: Box<dyn WriteFile>, see: impl FnMut(&[u8]) + Send + 'static) -> Box<dyn WriteFile> {
    Box::new(Observed { file, see })
}

struct Observed<S> {
    file: Box<dyn WriteFile>,
    see: S,
}

impl<S: FnMut(&[u8]) + Send> WriteFile for Observed<S> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        (self.see)(bytes);
        self.file.append(bytes)
    }

    fn append_marked(&mut self, bytes: &[u8], end: &[u8]) -> Result<()> {
        (self.see)(bytes);
        self.file.append_marked(bytes, end)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    fn sync_all(&mut self) -> Result<()> {
        self.file.sync_all()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn measure(&mut self, times: &Arc<WriteTimes>) {
        self.file.measure(times);
    }

    fn retired_window(&mut self) -> Option<RetiredWindow> {
        self.file.retired_window()
    }

    fn close(&mut self) -> Result<()> {
        self.file.close()
    }
}
