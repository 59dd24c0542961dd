//! Content-addressed store: `objects/ab/cdef…`, named by SHA-256.
//!
//! A blob is written beside its place, synced, then renamed, so a name never stands for half a file; reading hashes
//! again. Nothing is ever deleted or rewritten, except a blob found damaged when the same bytes are put again.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};

use crate::canonical;

/// Reference to a blob from inside a record; `verify` finds it by this shape, wherever it stands in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlobRef {
    /// SHA-256 of the bytes.
    pub blob: Digest,
    /// Their number.
    pub bytes: u64,
}

/// Reference to a folder of files: the blob named is its [`TreeManifest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeRef {
    /// SHA-256 of the manifest.
    pub tree: Digest,
    /// Number of files.
    pub files: u64,
    /// Sum of their sizes.
    pub bytes: u64,
}

/// The files of a folder, in ascending order of their paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeManifest {
    /// The files.
    pub files: Vec<TreeFile>,
}

/// One file of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeFile {
    /// Relative path with `/`, without `.` or `..`.
    pub path: String,
    /// Its content.
    pub content: BlobRef,
}

impl TreeManifest {
    /// The manifest of files that lie in no store, given by path and content.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut files: Vec<TreeFile> = files
            .into_iter()
            .map(|(path, bytes)| TreeFile {
                path: path.to_owned(),
                content: BlobRef {
                    blob: Digest::of(bytes),
                    bytes: bytes.len() as u64,
                },
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files }
    }

    /// The reference by which records name it.
    pub fn reference(&self) -> TreeRef {
        TreeRef {
            tree: Digest::of(self.text().as_bytes()),
            files: self.files.len() as u64,
            bytes: self.files.iter().map(|file| file.content.bytes).sum(),
        }
    }

    fn text(&self) -> String {
        canonical(&serde_json::json!(self))
    }
}

/// Why the object store could not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The file system refused.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The object is not there.
    #[error("object {0} is missing")]
    Missing(Digest),
    /// The object's bytes do not hash to its name.
    #[error("object {wanted} is damaged: its bytes hash to {found}")]
    Damaged {
        /// The name.
        wanted: Digest,
        /// What the bytes hash to.
        found: Digest,
    },
    /// A manifest that is none.
    #[error("object {0} is no file tree")]
    NotATree(Digest),
    /// A path that cannot be recorded or restored.
    #[error("`{0}` cannot stand in a file tree: only regular files below the folder, with UTF-8 names")]
    BadPath(String),
}

/// The object store of one run.
#[derive(Debug, Clone)]
pub struct ObjectStore {
    root: PathBuf,
}

static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl ObjectStore {
    /// The store of the run in `run_dir`. Folders are made on the first [`put`](Self::put).
    pub fn new(run_dir: &Path) -> Self {
        Self {
            root: run_dir.join("objects"),
        }
    }

    /// Where an object lies.
    pub fn path(&self, digest: Digest) -> PathBuf {
        let name = digest.to_string();
        self.root.join(&name[..2]).join(&name[2..])
    }

    /// Whether an object of this name and size lies there; its bytes are not read.
    pub fn contains(&self, blob: BlobRef) -> bool {
        fs::metadata(self.path(blob.blob)).is_ok_and(|found| found.is_file() && found.len() == blob.bytes)
    }

    /// Stores bytes and returns once they are on disk.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobRef, ObjectError> {
        let digest = Digest::of(bytes);
        let reference = BlobRef {
            blob: digest,
            bytes: bytes.len() as u64,
        };
        let path = self.path(digest);
        if fs::read(&path).is_ok_and(|found| found == bytes) {
            return Ok(reference);
        }
        let folder = path.parent().unwrap_or(&self.root);
        if !folder.is_dir() {
            fs::create_dir_all(folder).map_err(io_error("create", folder))?;
            sync_folder(&self.root)?;
        }
        let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!(".{}-{number}.part", std::process::id()));
        let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, &path));
        if let Err(source) = written {
            // The first error is the one to report; a left-over part file is harmless.
            let _ = fs::remove_file(&temporary);
            return Err(io_error("write", &path)(source));
        }
        sync_folder(folder)?;
        Ok(reference)
    }

    /// Reads a blob and checks its hash.
    pub fn get(&self, digest: Digest) -> Result<Vec<u8>, ObjectError> {
        let path = self.path(digest);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ObjectError::Missing(digest));
            }
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        match Digest::of(&bytes) {
            found if found == digest => Ok(bytes),
            found => Err(ObjectError::Damaged {
                wanted: digest,
                found,
            }),
        }
    }

    /// Reads a blob as text; bytes that are no UTF-8 become replacement characters.
    pub fn get_text(&self, digest: Digest) -> Result<String, ObjectError> {
        Ok(String::from_utf8_lossy(&self.get(digest)?).into_owned())
    }

    /// Stores every file below `folder`.
    pub fn put_tree(&self, folder: &Path) -> Result<TreeRef, ObjectError> {
        let files = files_below(folder)?;
        let mut entries = Vec::with_capacity(files.len());
        for path in files {
            let place = folder.join(&path);
            let bytes = fs::read(&place).map_err(io_error("read", &place))?;
            entries.push(TreeFile {
                content: self.put(&bytes)?,
                path,
            });
        }
        self.put_manifest(TreeManifest { files: entries })
    }

    /// Stores files given by path and content.
    pub fn put_files<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<TreeRef, ObjectError> {
        let mut entries = Vec::new();
        for (path, bytes) in files {
            if !is_plain(path) {
                return Err(ObjectError::BadPath(path.to_owned()));
            }
            entries.push(TreeFile {
                path: path.to_owned(),
                content: self.put(bytes)?,
            });
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        self.put_manifest(TreeManifest { files: entries })
    }

    fn put_manifest(&self, manifest: TreeManifest) -> Result<TreeRef, ObjectError> {
        self.put(manifest.text().as_bytes())?;
        Ok(manifest.reference())
    }

    /// Reads a manifest.
    pub fn tree(&self, tree: TreeRef) -> Result<TreeManifest, ObjectError> {
        let bytes = self.get(tree.tree)?;
        serde_json::from_slice(&bytes).map_err(|_| ObjectError::NotATree(tree.tree))
    }

    /// Reads all files of a tree.
    pub fn files(&self, tree: TreeRef) -> Result<Vec<(String, Vec<u8>)>, ObjectError> {
        let manifest = self.tree(tree)?;
        manifest
            .files
            .into_iter()
            .map(|file| Ok((file.path, self.get(file.content.blob)?)))
            .collect()
    }

    /// Writes a tree's files below `folder`, which should be empty.
    pub fn extract(&self, tree: TreeRef, folder: &Path) -> Result<(), ObjectError> {
        fs::create_dir_all(folder).map_err(io_error("create", folder))?;
        for (path, bytes) in self.files(tree)? {
            if !is_plain(&path) {
                return Err(ObjectError::BadPath(path));
            }
            let place = folder.join(&path);
            if let Some(parent) = place.parent() {
                fs::create_dir_all(parent).map_err(io_error("create", parent))?;
            }
            fs::write(&place, bytes).map_err(io_error("write", &place))?;
        }
        Ok(())
    }
}

/// Relative paths of all files below a folder, in ascending order; a link or a special file is an error.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<String>, ObjectError> {
    let mut files = Vec::new();
    collect(folder, "", &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<String>) -> Result<(), ObjectError> {
    for entry in fs::read_dir(folder).map_err(io_error("list", folder))? {
        let entry = entry.map_err(io_error("list", folder))?;
        let shown = || ObjectError::BadPath(entry.path().display().to_string());
        let name = entry.file_name().into_string().map_err(|_| shown())?;
        let path = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}/{name}")
        };
        // `file_type` of a directory entry does not follow links, so a link is neither of the two.
        let kind = entry.file_type().map_err(io_error("read", folder))?;
        if kind.is_dir() {
            collect(&entry.path(), &path, files)?;
        } else if kind.is_file() {
            files.push(path);
        } else {
            return Err(shown());
        }
    }
    Ok(())
}

fn is_plain(path: &str) -> bool {
    !path.is_empty()
        && Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub(crate) fn sync_folder(folder: &Path) -> Result<(), ObjectError> {
    File::open(folder)
        .and_then(|file| file.sync_all())
        .map_err(io_error("sync", folder))
}

fn io_error<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> ObjectError + 'a {
    move |source| ObjectError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}
