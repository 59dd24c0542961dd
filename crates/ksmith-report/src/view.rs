//! What a report shows of a run, read from the ledger and nothing else.

use std::path::Path;

use ksmith_ledger::lookup::{FileDiff, LookupError, SourceFile, diff_sources};
use ksmith_ledger::{
    Certificate, CertificateError, History, ObjectError, ObjectStore, PublicKey, ReadError, SignedCertificate,
};

/// Why a run cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunViewError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An object cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A look-up failed.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The certificate cannot be read.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// A run, ready to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct RunView {
    /// The run, folded from its records.
    pub history: History,
    /// The certificate that the record gives; absent while the run is not closed.
    pub certificate: Option<Certificate>,
    /// The key that signed `certificate.json`, if it says the same.
    pub signed_by: Option<PublicKey>,
    /// The expanded contract.
    pub contract: String,
    /// The champion's files.
    pub champion_source: Vec<SourceFile>,
    /// What the champion changed against the baseline.
    pub champion_diff: Vec<FileDiff>,
    /// Names of the files in the run's folder.
    pub files: Vec<String>,
}

impl RunView {
    /// Reads a run folder; the chain and every blob shown are checked on the way.
    pub fn load(run_dir: &Path) -> Result<Self, RunViewError> {
        let history = History::load(run_dir)?;
        let objects = ObjectStore::new(run_dir);
        let certificate = history
            .closed
            .is_some()
            .then(|| Certificate::of(&history))
            .transpose()?;
        let signed = SignedCertificate::read(run_dir)?;
        let signed_by = signed
            .filter(|signed| Some(&signed.certificate) == certificate.as_ref())
            .filter(|signed| {
                signed
                    .key
                    .verifies(&signed.certificate.message(), &signed.signature)
            })
            .map(|signed| signed.key);
        let files = |tree| -> Result<Vec<SourceFile>, ObjectError> {
            let files = objects.files(tree)?.into_iter();
            Ok(files
                .map(|(path, bytes)| SourceFile {
                    path,
                    text: String::from_utf8_lossy(&bytes).into_owned(),
                })
                .collect())
        };
        let champion_source = match history.champion() {
            Some(champion) => files(champion.proposed.tree)?,
            None => Vec::new(),
        };
        let champion_diff = match history.champion() {
            Some(champion) => diff_sources(
                "baseline",
                &files(history.opened.baseline)?,
                champion.id(),
                &champion_source,
            ),
            None => Vec::new(),
        };
        Ok(Self {
            contract: objects.get_text(history.opened.contract.blob)?,
            certificate,
            signed_by,
            champion_source,
            champion_diff,
            files: names(run_dir),
            history,
        })
    }

    /// The headline: the certificate's claim, or where an unfinished run stands.
    pub fn headline(&self) -> String {
        if let Some(certificate) = &self.certificate {
            return certificate.claim.clone();
        }
        let opened = &self.history.opened;
        let stands = match &self.history.champion {
            Some(champion) => format!("candidate {champion} leads so far"),
            None => self.history.without_champion(),
        };
        format!(
            "The run on {} is not finished: {stands}. {}",
            opened.instance,
            opened.scope.sentence()
        )
        .trim_end()
        .to_owned()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
