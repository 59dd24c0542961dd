//! The blobs: every object that a record names is there and whole, and every file in the store is an object.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ksmith_task::Digest;
use serde_json::Value;

use super::chain::Chain;
use super::damage::{Cause, Checked, Place, damage};
use super::report::Report;
use crate::{BlobRef, TreeManifest, TreeRef};

/// Where a blob is named for the first time, and with which size.
struct Named {
    seq: usize,
    bytes: Option<u64>,
}

pub(super) fn check(run_dir: &Path, chain: &Chain, report: &mut Report) -> Checked {
    let mut blobs: BTreeMap<Digest, Named> = BTreeMap::new();
    let mut trees: BTreeMap<Digest, (usize, TreeRef)> = BTreeMap::new();
    for (seq, record) in chain.records().iter().enumerate() {
        references(&record.body, &mut |reference| match reference {
            Reference::Blob(blob) => {
                blobs.entry(blob.blob).or_insert(Named {
                    seq,
                    bytes: Some(blob.bytes),
                });
            }
            Reference::Tree(tree) => {
                trees.entry(tree.tree).or_insert((seq, tree));
            }
        });
    }
    // Trees first: their files are blobs too.
    for (digest, (seq, tree)) in &trees {
        let bytes = object(
            run_dir,
            chain,
            *digest,
            &Named {
                seq: *seq,
                bytes: None,
            },
        )?;
        let place = || Place {
            object: Some(*digest),
            ..chain.place(*seq)
        };
        let manifest: TreeManifest = serde_json::from_slice(&bytes).map_err(|error| {
            damage(
                Cause::ObjectDamaged,
                place(),
                format!("the file list is none: {error}"),
            )
        })?;
        let total: u64 = manifest.files.iter().map(|file| file.content.bytes).sum();
        if (manifest.files.len() as u64, total) != (tree.files, tree.bytes) {
            return Err(damage(
                Cause::ObjectDamaged,
                place(),
                "the file list has another number of files or bytes",
            ));
        }
        for file in manifest.files {
            let named = Named {
                seq: *seq,
                bytes: Some(file.content.bytes),
            };
            blobs.entry(file.content.blob).or_insert(named);
        }
    }
    // In the order of the records, so that the first damage is the earliest.
    let mut ordered: Vec<_> = blobs.iter().collect();
    ordered.sort_by_key(|(digest, named)| (named.seq, **digest));
    for (digest, named) in ordered {
        object(run_dir, chain, *digest, named)?;
    }
    let named = |digest: &Digest| blobs.contains_key(digest) || trees.contains_key(digest);
    store(run_dir, &named, report)
}

enum Reference {
    Blob(BlobRef),
    Tree(TreeRef),
}

/// Finds blob and tree references by their shape, wherever they stand.
fn references(value: &Value, found: &mut dyn FnMut(Reference)) {
    match value {
        Value::Object(map) => {
            let digest = |key: &str| map.get(key)?.as_str()?.parse::<Digest>().ok();
            let number = |key: &str| map.get(key)?.as_u64();
            if let (2, Some(blob), Some(bytes)) = (map.len(), digest("blob"), number("bytes")) {
                found(Reference::Blob(BlobRef { blob, bytes }));
            } else if let (3, Some(tree), Some(files), Some(bytes)) =
                (map.len(), digest("tree"), number("files"), number("bytes"))
            {
                found(Reference::Tree(TreeRef { tree, files, bytes }));
            } else {
                map.values().for_each(|value| references(value, found));
            }
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn name(digest: &Digest) -> String {
    let name = digest.to_string();
    format!("objects/{}/{}", &name[..2], &name[2..])
}

fn object(run_dir: &Path, chain: &Chain, digest: Digest, named: &Named) -> Checked<Vec<u8>> {
    let file = name(&digest);
    let place = || Place {
        file: file.clone(),
        seq: Some(named.seq as u64),
        line: chain.place(named.seq).line,
        offset: None,
        object: Some(digest),
    };
    let bytes = fs::read(run_dir.join(&file)).map_err(|error| {
        let detail = format!(
            "record {} names this object, and it cannot be read: {error}",
            named.seq
        );
        damage(Cause::ObjectMissing, place(), detail)
    })?;
    if let Some(size) = named.bytes.filter(|size| *size != bytes.len() as u64) {
        let detail = format!(
            "the object has {} bytes, record {} says {size}",
            bytes.len(),
            named.seq
        );
        return Err(damage(Cause::ObjectDamaged, place(), detail));
    }
    let found = Digest::of(&bytes);
    if found != digest {
        let detail = format!("the object's bytes hash to {}: it was changed", found.short());
        return Err(damage(Cause::ObjectDamaged, place(), detail));
    }
    Ok(bytes)
}

/// Walks the object folder itself: every file is an object with its own hash for a name. Part files of killed writes
/// are allowed.
fn store(run_dir: &Path, named: &dyn Fn(&Digest) -> bool, report: &mut Report) -> Checked {
    let root = run_dir.join("objects");
    let mut folders: Vec<_> = fs::read_dir(&root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    for folder in folders {
        let mut files: Vec<_> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        files.sort();
        let prefix = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !folder.is_dir() {
            return Err(stray(&format!("objects/{prefix}")));
        }
        for path in files {
            let rest = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if rest.starts_with('.') && rest.ends_with(".part") {
                continue;
            }
            let file = format!("objects/{prefix}/{rest}");
            let digest: Digest = format!("{prefix}{rest}").parse().map_err(|_| stray(&file))?;
            let bytes = fs::read(&path).map_err(|_| stray(&file))?;
            report.objects += 1;
            report.object_bytes += bytes.len() as u64;
            if named(&digest) {
                continue;
            }
            report.unreferenced_objects += 1;
            let found = Digest::of(&bytes);
            if found != digest {
                let place = Place {
                    file,
                    object: Some(digest),
                    ..Place::default()
                };
                let detail = format!("the object's bytes hash to {}: it was changed", found.short());
                return Err(damage(Cause::ObjectDamaged, place, detail));
            }
        }
    }
    Ok(())
}

fn stray(file: &str) -> Box<super::Damage> {
    let place = Place {
        file: file.into(),
        ..Place::default()
    };
    damage(Cause::StrayFile, place, "no object can have this name")
}
