//! The certificate: what a closed run claims, in one sentence and in fields, signed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};

use crate::body::is_zero;
use crate::history::unstated_words;
use crate::sign::{KeyPair, PublicKey};
use crate::{Decision, History, Outcome, RevealedSeed, Role, Scope, Speedup, TreeRef, canonical};

/// Name of the certificate inside a run folder.
pub const CERTIFICATE_FILE: &str = "certificate.json";

/// Under this name the locks hold the hash of the C header of the run's symbol, which an export writes.
pub const HEADER_LOCK: &str = "header";

/// What is signed begins with this line, so that no other text of ours can pass for a certificate.
pub const SIGNING_PREFIX: &str = "ksmith certificate 1\n";

/// The champion of a certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertifiedChampion {
    /// Its id within the run.
    pub id: String,
    /// What part it played.
    pub role: Role,
    /// Its digest, as it stands in verdicts.
    pub digest: Digest,
    /// Its files.
    pub tree: TreeRef,
    /// Hash of the verdict of its last confirmation, on which the figures rest.
    pub verdict: Digest,
    /// Its trust tier.
    pub tier: String,
    /// Isolation it ran under.
    pub isolation: String,
    /// Confirmed gain over the champion before it, as it was promoted.
    pub speedup: Option<Speedup>,
    /// Gain over the task's baseline in the last confirmation.
    pub over_baseline: Option<Speedup>,
    /// Gain over the flag control in the last confirmation.
    pub over_flag_control: Option<Speedup>,
}

/// What a closed run claims.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Version of this shape.
    pub v: u32,
    /// The claim in one sentence; follows from the fields below.
    pub claim: String,
    /// The run.
    pub run: String,
    /// The task.
    pub task: String,
    /// Its instance.
    pub instance: String,
    /// How the run ended.
    pub outcome: Outcome,
    /// The champion; null when the baseline stands.
    pub champion: Option<CertifiedChampion>,
    /// The goal as a time ratio to the baseline.
    pub goal: f64,
    /// What hardware the numbers speak of.
    pub scope: Scope,
    /// The sentence that goes with the scope.
    pub scope_note: String,
    /// Isolation of the run.
    pub isolation: String,
    /// Whether the user asked to run without a sandbox.
    pub unsandboxed: bool,
    /// Trust tier of the run.
    pub tier: String,
    /// Timing protocol.
    pub protocol: String,
    /// The compiler in words.
    pub compiler: String,
    /// The device in words.
    pub device: String,
    /// Hash of the device record.
    pub device_digest: Digest,
    /// Hashes of everything locked.
    pub locks: BTreeMap<String, Digest>,
    /// Seeds of the judge, revealed.
    pub seeds: Vec<RevealedSeed>,
    /// Full scorings.
    pub candidates: u64,
    /// Screened configurations.
    pub screened: u64,
    /// Candidates whose scoring ended without a statement.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unstated: u64,
    /// Full scorings that came to no measurement.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmeasured: u64,
    /// Number of records, the closing one included.
    pub records: u64,
    /// Hash of the closing record: the head of the ledger.
    pub head: Digest,
    /// Time of the closing record.
    pub closed_at: String,
    /// Version of the tool.
    pub tool: String,
}

/// A certificate with its signature: the content of `certificate.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignedCertificate {
    /// The certificate.
    pub certificate: Certificate,
    /// The key that signed it. Proves nothing by itself: compare it with a key you know.
    pub key: PublicKey,
    /// Ed25519 over [`SIGNING_PREFIX`] and the certificate's canonical JSON; 128 hex digits.
    pub signature: String,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The run is not closed.
    #[error("run `{0}` is not closed: only a closed run gets a certificate")]
    NotClosed(String),
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
    /// The file holds no certificate.
    #[error("`{}` is no certificate", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
}

impl Certificate {
    /// Draws the certificate of a closed run from its record.
    pub fn of(history: &History) -> Result<Self, CertificateError> {
        let opened = &history.opened;
        let Some(closed) = &history.closed else {
            return Err(CertificateError::NotClosed(opened.run.clone()));
        };
        let champion = history.champion().and_then(|champion| {
            let promoted = champion.promoted.as_ref()?;
            let promoting = champion
                .confirmed
                .iter()
                .find(|confirmed| confirmed.verdict_digest == promoted.verdict_digest)?;
            // Figures of the last confirmation: its secrets were drawn after every choice, so that no choice among
            // candidates flatters it.
            let confirmed = champion
                .confirmed
                .iter()
                .rev()
                .find(|confirmed| confirmed.verdict.verdict == Decision::Accept)
                .unwrap_or(promoting);
            let verdict = &confirmed.verdict;
            Some(CertifiedChampion {
                id: champion.id().to_owned(),
                role: champion.proposed.role,
                digest: champion.proposed.digest,
                tree: promoted.tree,
                verdict: confirmed.verdict_digest,
                tier: verdict.tier.clone(),
                isolation: verdict.isolation.clone(),
                speedup: promoting.verdict.speedup,
                over_baseline: verdict.over_baseline,
                over_flag_control: verdict.over_flag_control,
            })
        });
        let mut certificate = Self {
            v: 1,
            claim: String::new(),
            run: opened.run.clone(),
            task: opened.task.clone(),
            instance: opened.instance.clone(),
            outcome: closed.outcome,
            champion,
            goal: opened.goal,
            scope: opened.scope,
            scope_note: opened.scope.sentence().to_owned(),
            isolation: opened.isolation.clone(),
            unsandboxed: opened.unsandboxed,
            tier: opened.tier.clone(),
            protocol: opened.protocol.clone(),
            compiler: opened.compiler.clone(),
            device: opened.device_name.clone(),
            device_digest: opened.device,
            locks: opened.locks.clone(),
            seeds: closed.seeds.clone(),
            candidates: closed.candidates,
            screened: closed.screened,
            unstated: closed.unstated,
            unmeasured: closed.unmeasured,
            records: history.records,
            head: history.head,
            closed_at: history.last_at.clone(),
            tool: opened.tool.clone(),
        };
        certificate.claim = certificate.sentence();
        Ok(certificate)
    }

    /// The claim in one sentence, from the fields.
    pub fn sentence(&self) -> String {
        let mut text = match &self.champion {
            None if self.unstated > 0 => format!(
                "No candidate for {} was confirmed to be faster after {} full scorings and {} screened configurations, \
                 and no statement was possible on {}",
                self.instance,
                self.candidates,
                self.screened,
                unstated_words(self.unstated)
            ),
            None if self.candidates == 0 && self.screened == 0 => {
                format!(
                    "Nothing was measured for {}: no candidate was screened or scored",
                    self.instance
                )
            }
            None if self.unmeasured > 0 && self.unmeasured == self.candidates => format!(
                "Nothing was measured for {}: each of {} full scorings failed a gate before the timing, after {} \
                 screened configurations",
                self.instance, self.candidates, self.screened
            ),
            None if self.candidates == 0 => format!(
                "No candidate for {} was scored in full: the baseline stands unchallenged after {} screened \
                 configurations",
                self.instance, self.screened
            ),
            None => format!(
                "No candidate for {} was confirmed to be faster: the baseline stands after {} full scorings and {} \
                 screened configurations",
                self.instance, self.candidates, self.screened
            ),
            Some(champion) => {
                let gain = |speedup: Option<Speedup>, over: &str| match speedup {
                    Some(Speedup { point, lower, .. }) => {
                        format!("at least {lower:.2} times as fast as {over} (median {point:.2})")
                    }
                    None => format!("not measured against {over}"),
                };
                format!(
                    "Candidate {} computes {} correctly on every hidden case and is {} and {}, confirmed with new \
                     secrets",
                    champion.id,
                    self.instance,
                    gain(champion.over_baseline, "the task's baseline"),
                    match champion.role {
                        Role::FlagControl => "no more than that baseline under better flags".to_owned(),
                        Role::Candidate | Role::Seed | Role::Baseline => {
                            gain(
                                champion.over_flag_control,
                                "the same baseline under the best flags",
                            )
                        }
                    },
                )
            }
        };
        text.push_str(&format!(
            ", on {}, compiled by {}, protocol {}, tier {}, isolation {}",
            self.device, self.compiler, self.protocol, self.tier, self.isolation
        ));
        if self.unsandboxed {
            text.push_str(" (WITHOUT A SANDBOX, as the user asked)");
        }
        text.push('.');
        if !self.scope_note.is_empty() {
            text.push(' ');
            text.push_str(&self.scope_note);
        }
        text
    }

    /// The bytes that are signed.
    pub fn message(&self) -> Vec<u8> {
        let value = serde_json::to_value(self).unwrap_or_default();
        [SIGNING_PREFIX.as_bytes(), canonical(&value).as_bytes()].concat()
    }

    /// Signs.
    pub fn sign(self, key: &KeyPair) -> SignedCertificate {
        let signature = key.sign(&self.message());
        SignedCertificate {
            key: key.public(),
            signature,
            certificate: self,
        }
    }
}

impl SignedCertificate {
    /// The content of the file: indented JSON with a line feed at the end, the same bytes each time.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Writes `certificate.json` into the run folder.
    pub fn write(&self, run_dir: &Path) -> Result<(), CertificateError> {
        let path = run_dir.join(CERTIFICATE_FILE);
        let text = self.text().map_err(|source| CertificateError::Malformed {
            path: path.clone(),
            source,
        })?;
        crate::views::replace(&path, text.as_bytes()).map_err(|source| CertificateError::Io {
            what: "write",
            path,
            source,
        })
    }

    /// Reads `certificate.json`; `None` where there is none. Checks nothing: that is what `verify` does.
    pub fn read(run_dir: &Path) -> Result<Option<Self>, CertificateError> {
        let path = run_dir.join(CERTIFICATE_FILE);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|source| CertificateError::Malformed { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(CertificateError::Io {
                what: "read",
                path,
                source,
            }),
        }
    }
}
