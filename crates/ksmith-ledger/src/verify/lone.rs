//! A certificate by itself, away from the record it was drawn from: an exported folder, or a file that was sent.
//!
//! What can be checked is who says it and that it is spelled out whole. The figures stand in the record.

use std::path::Path;

use ksmith_task::{Candidate, Digest};
use serde::Serialize;

use super::anchor;
use super::chain::read;
use super::damage::{Cause, Damage, at_file, damage};
use super::report::{Anchors, Head, VerifyOptions};
use crate::object::files_below;
use crate::{Certificate, HEADER_LOCK, PublicKey, TreeManifest};

/// A certificate whose signature fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoneCertificate {
    /// What it claims.
    pub certificate: Certificate,
    /// The key that signed it. Proves nothing by itself: compare it with one you know.
    pub key: PublicKey,
    /// Which anchors held.
    pub anchors: Anchors,
}

/// Checks a certificate without its run: spelling, signature, the sentence against its fields, and the anchors given.
///
/// # Errors
/// The first thing that is wrong.
pub fn verify_certificate(path: &Path, options: &VerifyOptions) -> Result<LoneCertificate, Box<Damage>> {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new(""));
    let signed = anchor::signed(folder, &name, options)?.ok_or_else(|| {
        damage(
            Cause::CertificateUnreadable,
            at_file(&name),
            "there is no such file",
        )
    })?;
    let certificate = signed.certificate;
    if certificate.claim != certificate.sentence() {
        let detail = "`claim` is not what its own fields say";
        return Err(damage(Cause::CertificateMismatch, at_file(&name), detail));
    }
    if let Some(wanted) = options
        .head
        .as_ref()
        .filter(|wanted| !wanted.fits(&certificate.head))
    {
        let detail = format!(
            "the certificate speaks of head {}, not {wanted}",
            certificate.head
        );
        return Err(damage(Cause::HeadMismatch, at_file(&name), detail));
    }
    Ok(LoneCertificate {
        key: signed.key,
        anchors: Anchors {
            head: options.head.is_some(),
            head_digits: options.head.as_ref().and_then(Head::partial),
            public_key: options.public_key.is_some(),
        },
        certificate,
    })
}

/// Files beside a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// Files that are byte for byte those that the certificate names.
    pub checked: Vec<String>,
    /// Files that it does not name.
    pub extra: Vec<String>,
}

/// Holds everything that lies beside a certificate against it: the champion's files and the header of its symbol.
///
/// A folder with nothing but the certificate has nothing to check.
///
/// # Errors
/// The first thing that is wrong: a changed or missing file, a folder that cannot be read.
pub fn verify_export(path: &Path, certificate: &Certificate) -> Result<Exported, Box<Damage>> {
    let name = path.file_name().map(|name| name.to_string_lossy());
    let folder = path.parent().unwrap_or(Path::new(""));
    let names =
        files_below(folder).map_err(|error| damage(Cause::Unreadable, at_file("."), error.to_string()))?;
    let mut files = Vec::new();
    for file in names {
        if name.as_deref() != Some(&file) {
            let bytes = read(folder, &file, Cause::Unreadable)?.unwrap_or_default();
            files.push((file, bytes));
        }
    }
    let Some(champion) = &certificate.champion else {
        return Ok(Exported {
            checked: Vec::new(),
            extra: files.into_iter().map(|(file, _)| file).collect(),
        });
    };
    let mut found = Exported::default();
    if files.is_empty() {
        return Ok(found);
    }
    let is_tree = |files: &[(String, Vec<u8>)]| {
        let named = files
            .iter()
            .map(|(file, bytes)| (file.as_str(), bytes.as_slice()));
        TreeManifest::of(named).reference() == champion.tree
    };
    let header = format!("{}.h", certificate.task);
    // A champion may have a file of the header's name itself; then the export wrote no other.
    let is_own = files.iter().any(|(file, _)| *file == header) && is_tree(&files);
    if let Some(wanted) = certificate.locks.get(HEADER_LOCK).filter(|_| !is_own) {
        let at = files.iter().position(|(file, _)| *file == header);
        let at = at.ok_or_else(|| damage(Cause::ExportMismatch, at_file(&header), "it is missing"))?;
        if Digest::of(&files[at].1) != *wanted {
            let detail = "it is not the header that the run locked";
            return Err(damage(Cause::ExportMismatch, at_file(&header), detail));
        }
        found.checked.push(files.remove(at).0);
    }
    if is_tree(&files) {
        found.checked.extend(files.into_iter().map(|(file, _)| file));
        return Ok(found);
    }
    let candidate = Candidate::load(folder).map_err(|error| {
        let detail = format!("the champion's manifest and sources cannot be read: {error}");
        damage(Cause::ExportMismatch, at_file("candidate.toml"), detail)
    })?;
    if candidate.digest() != champion.digest {
        let detail = "the manifest and the sources it lists are not the champion's";
        return Err(damage(Cause::ExportMismatch, at_file("candidate.toml"), detail));
    }
    let is_source = |file: &str| {
        file == "candidate.toml"
            || candidate
                .sources
                .iter()
                .any(|source| source.path == Path::new(file))
    };
    for (file, _) in files {
        if is_source(&file) {
            found.checked.push(file);
        } else {
            found.extra.push(file);
        }
    }
    Ok(found)
}
