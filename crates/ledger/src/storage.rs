//! Where segments lie: a folder of this machine, or in tests one that fails on demand.

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Keeps segments by name.
pub(crate) trait Storage: Debug + Send + Sync {
    /// Makes a new, empty segment to append to.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Segment>>;
    /// Names of the segments that are there, oldest first.
    fn list(&self) -> io::Result<Vec<String>>;
    /// What a segment holds from `offset` on.
    fn read(&self, name: &str, offset: u64) -> io::Result<Vec<u8>>;
    /// Bytes of a segment.
    fn size(&self, name: &str) -> io::Result<u64>;
    /// Removes a segment. One that is gone already is removed.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A segment that is appended to.
pub(crate) trait Segment: Debug + Send + Sync {
    /// Puts all of `bytes` at the end.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts off what lies beyond `length`.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Waits until the disk has it.
    fn sync(&self) -> io::Result<()>;
}

/// Segments of a folder. Only the user that runs the gateway may read them.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

const ENDING: &str = ".segment";

impl Folder {
    /// The folder, made where it is missing.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Self(path.to_owned()))
    }

    /// A folder that is only read.
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}{ENDING}"))
    }
}

impl Storage for Folder {
    fn create(&self, name: &str) -> io::Result<Arc<dyn Segment>> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(self.file(name))?;
        Ok(Arc::new(file))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let name = entry?.file_name();
            if let Some(name) = name.to_str().and_then(|name| name.strip_suffix(ENDING)) {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn read(&self, name: &str, offset: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.file(name))?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn size(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.file(name))?.len())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.file(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

impl Segment for File {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self;
        file.write_all(bytes)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
