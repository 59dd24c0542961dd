//! A certificate by itself, away from the record it was drawn from: an exported folder, or a file that was sent.
//!
//! What can be checked is who says it and that it is spelled out whole. The figures stand in the record.

use std::path::Path;

use serde::Serialize;

use super::anchor;
use super::damage::{Cause, Damage, at_file, damage};
use super::report::{Anchors, VerifyOptions};
use crate::{Certificate, PublicKey};

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
    if let Some(wanted) = options.head.filter(|wanted| *wanted != certificate.head) {
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
            public_key: options.public_key.is_some(),
        },
        certificate,
    })
}
