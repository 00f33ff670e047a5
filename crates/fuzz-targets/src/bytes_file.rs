//! A file that is a slice of memory.

use outcrop_base::Result;
use outcrop_env::ReadFile;
use std::path::Path;
use std::sync::Arc;

/// The path that every error about the file must name.
pub const PATH: &str = "/fuzzed/file";

struct BytesFile(Vec<u8>);

/// `bytes` as a file.
pub fn file(bytes: &[u8]) -> Arc<dyn ReadFile> {
    Arc::new(BytesFile(bytes.to_vec()))
}

impl ReadFile for BytesFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let start = usize::try_from(offset).map_or(self.0.len(), |offset| offset.min(self.0.len()));
        let len = buf.len().min(self.0.len() - start);
        buf[..len].copy_from_slice(&self.0[start..start + len]);
        Ok(len)
    }

    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn path(&self) -> &Path {
        Path::new(PATH)
    }
}
