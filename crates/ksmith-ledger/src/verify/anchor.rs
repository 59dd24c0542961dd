//! What ties the chain to something outside it: seeds, head, certificate.

use std::collections::BTreeMap;
use std::path::Path;

use ksmith_task::Digest;
use serde_json::Value;

use super::chain::{Chain, read};
use super::damage::{Cause, Checked, Damage, Place, at_file, damage};
use super::report::{CertificateCheck, Report, RunState, VerifyOptions};
use super::scan;
use crate::{
    CERTIFICATE_FILE, Certificate, CertifiedChampion, Closed, Confirmed, Decision, Entry, Kind, Promoted,
    Proposed, RevealedSeed, SIGNING_PREFIX, SeedCommitment, SignedCertificate,
};

/// Checks that a closed run reveals each seed it committed to, and no other.
pub(super) fn seeds(chain: &Chain) -> Checked {
    let Some(closed) = closed(chain) else {
        return Ok(());
    };
    let mismatch = |detail: String| Err(damage(Cause::SeedMismatch, chain.end(), detail));
    let mut committed: BTreeMap<String, Digest> = BTreeMap::new();
    let mut commit = |seed: &SeedCommitment| committed.insert(seed.purpose.clone(), seed.commitment);
    chain.opened.seeds.iter().for_each(|seed| {
        commit(seed);
    });
    for record in chain
        .records()
        .iter()
        .filter(|record| record.kind == Kind::Committed)
    {
        if let Ok(Entry::Committed(body)) = record.entry()
            && commit(&body.seed).is_some()
        {
            let detail = format!("seed `{}` is committed to twice", body.seed.purpose);
            return Err(damage(
                Cause::SeedMismatch,
                chain.place(record.seq as usize),
                detail,
            ));
        }
    }
    for revealed in &closed.seeds {
        match committed.remove(&revealed.purpose) {
            None => return mismatch(format!("seed `{}` was never committed to", revealed.purpose)),
            Some(commitment) if Some(commitment) != commitment_of(revealed) => {
                return mismatch(format!("seed `{}` is not the one committed to", revealed.purpose));
            }
            Some(_) => {}
        }
    }
    match committed.keys().next() {
        None => Ok(()),
        Some(purpose) => mismatch(format!("seed `{purpose}` was not revealed")),
    }
}

/// The commitment to a revealed seed, computed from the documented layout: lengths and bytes of four strings.
fn commitment_of(revealed: &RevealedSeed) -> Option<Digest> {
    let digits = revealed.seed.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(|digit| b"0123456789abcdef".contains(digit)) {
        return None;
    }
    let seed: Vec<u8> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&revealed.seed[at..at + 2], 16))
        .collect::<Result<_, _>>()
        .ok()?;
    let mut message = Vec::new();
    for part in [b"purpose", revealed.purpose.as_bytes(), b"seed", &seed] {
        message.extend((part.len() as u64).to_le_bytes());
        message.extend(part);
    }
    Some(Digest::of(&message))
}

fn closed(chain: &Chain) -> Option<Closed> {
    match chain.records().last()?.entry() {
        Ok(Entry::Closed(closed)) => Some(closed),
        _ => None,
    }
}

/// Holds the given head against the chain.
pub(super) fn head(chain: &Chain, options: &VerifyOptions, report: &mut Report) -> Checked {
    let Some(wanted) = &options.head else {
        return Ok(());
    };
    let records = chain.records();
    match records.iter().position(|record| wanted.fits(&record.hash)) {
        Some(index) if index + 1 == records.len() => {
            report.anchors.head = true;
            report.anchors.head_digits = wanted.partial();
            Ok(())
        }
        Some(index) => Err(damage(
            Cause::RecordsAfterHead,
            chain.place(index + 1),
            format!(
                "{} records follow the head you gave (record {index}); if the run was resumed since, give its newer \
                 head",
                records.len() - index - 1
            ),
        )),
        None => {
            let end = match report.state {
                RunState::Closed => "the chain was rewritten, or this is another run",
                RunState::Open | RunState::Interrupted => {
                    "the tail was dropped, the chain was rewritten, or this is another run"
                }
            };
            let found = records
                .last()
                .map_or_else(String::new, |record| record.hash.to_string());
            let detail = format!("the head is {found}, not {wanted}: {end}");
            Err(damage(Cause::HeadMismatch, chain.end(), detail))
        }
    }
}

/// Checks the certificate's signature, and each of its statements against the ledger.
pub(super) fn certificate(
    run_dir: &Path,
    chain: &Chain,
    options: &VerifyOptions,
    report: &mut Report,
) -> Checked {
    let Some(signed) = signed(run_dir, CERTIFICATE_FILE, options)? else {
        if options.public_key.is_some() {
            let detail = "there is no certificate that the key you gave could have signed";
            return Err(damage(
                Cause::CertificateUnreadable,
                at_file(CERTIFICATE_FILE),
                detail,
            ));
        }
        if report.state == RunState::Closed {
            let confirmed = closed(chain).is_some_and(|closed| closed.champion.is_some());
            report.gaps.push(format!(
                "`{CERTIFICATE_FILE}` is missing{}",
                if confirmed {
                    ", so nobody vouches for the confirmed champion"
                } else {
                    ""
                }
            ));
        }
        return Ok(());
    };
    compare(chain, &signed.certificate)?;
    report.anchors.public_key = options.public_key.is_some();
    report.certificate = Some(CertificateCheck {
        key: signed.key,
        known: options.public_key.is_some(),
        claim: signed.certificate.claim,
    });
    Ok(())
}

/// Reads a certificate and checks its spelling, its signature and whose it is; `None` where there is none.
pub(super) fn signed(
    folder: &Path,
    name: &str,
    options: &VerifyOptions,
) -> Checked<Option<SignedCertificate>> {
    let at = || at_file(name);
    let Some(bytes) = read(folder, name, Cause::CertificateUnreadable)? else {
        return Ok(None);
    };
    let unreadable = |detail: String| damage(Cause::CertificateUnreadable, at(), detail);
    let signed: SignedCertificate = serde_json::from_slice(&bytes)
        .map_err(|error| unreadable(format!("it is no certificate: {error}")))?;
    // One spelling only, so that no byte of the file is free to change.
    let spelled =
        serde_json::to_string_pretty(&signed).map_err(|error| unreadable(error.to_string()))? + "\n";
    if spelled.as_bytes() != bytes {
        let offset = spelled.bytes().zip(&bytes).take_while(|(a, b)| a == *b).count() as u64;
        let place = Place {
            offset: Some(offset),
            ..at()
        };
        return Err(damage(
            Cause::CertificateUnreadable,
            place,
            "it is not spelled as the tool writes it",
        ));
    }
    let value: Value =
        serde_json::to_value(&signed.certificate).map_err(|error| unreadable(error.to_string()))?;
    let mut message = SIGNING_PREFIX.to_owned();
    scan::compact(&value, &mut message);
    if !signed.key.verifies(message.as_bytes(), &signed.signature) {
        return Err(damage(
            Cause::BadSignature,
            at(),
            "the signature does not fit the text",
        ));
    }
    if let Some(known) = options.public_key.filter(|known| *known != signed.key) {
        let detail = format!("it is signed by key {}, not by {known}", signed.key);
        return Err(damage(Cause::OtherKey, at(), detail));
    }
    Ok(Some(signed))
}

/// Holds each statement of the certificate against the ledger.
fn compare(chain: &Chain, certificate: &Certificate) -> Checked {
    let records = chain.records();
    let opened = &chain.opened;
    let (found, wanted) = (records.len() as u64, certificate.records);
    if certificate.run != opened.run {
        let detail = format!(
            "the certificate is for run `{}`, the ledger is of `{}`",
            certificate.run, opened.run
        );
        return Err(damage(Cause::OtherRun, at_file(CERTIFICATE_FILE), detail));
    }
    if found < wanted {
        let detail =
            format!("the certificate covers {wanted} records, the ledger has {found}: its tail was dropped");
        return Err(damage(Cause::DroppedTail, chain.end(), detail));
    }
    let (Some(last), Some(closed)) = (records.last(), closed(chain)) else {
        return Err(damage(
            Cause::CertificateMismatch,
            chain.end(),
            "there is a certificate, and the run is not closed",
        ));
    };
    if last.hash != certificate.head {
        let detail = format!(
            "the head is {}, the certificate says {}: the chain was rewritten",
            last.hash, certificate.head
        );
        return Err(damage(Cause::HeadMismatch, chain.end(), detail));
    }
    let statements = [
        ("v", certificate.v == 1),
        ("task", certificate.task == opened.task),
        ("instance", certificate.instance == opened.instance),
        ("outcome", certificate.outcome == closed.outcome),
        ("goal", same(certificate.goal, opened.goal)),
        ("scope", certificate.scope == opened.scope),
        ("scope_note", certificate.scope_note == opened.scope.sentence()),
        ("isolation", certificate.isolation == opened.isolation),
        ("unsandboxed", certificate.unsandboxed == opened.unsandboxed),
        ("tier", certificate.tier == opened.tier),
        ("protocol", certificate.protocol == opened.protocol),
        ("compiler", certificate.compiler == opened.compiler),
        ("device", certificate.device == opened.device_name),
        ("device_digest", certificate.device_digest == opened.device),
        ("locks", certificate.locks == opened.locks),
        ("seeds", certificate.seeds == closed.seeds),
        ("candidates", certificate.candidates == closed.candidates),
        ("screened", certificate.screened == closed.screened),
        ("unstated", certificate.unstated == closed.unstated),
        ("unmeasured", certificate.unmeasured == closed.unmeasured),
        ("records", found == wanted),
        ("closed_at", certificate.closed_at == last.time),
        ("tool", certificate.tool == opened.tool),
        ("champion", certificate.champion == champion(chain, &closed)?),
        ("claim", certificate.claim == certificate.sentence()),
    ];
    match statements.into_iter().find(|(_, holds)| !holds) {
        None => Ok(()),
        Some((field, _)) => Err(mismatch(&format!("`{field}` is not what the ledger says"))),
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}

fn mismatch(detail: &str) -> Box<Damage> {
    damage(Cause::CertificateMismatch, at_file(CERTIFICATE_FILE), detail)
}

/// The champion as the records have it: the last promotion that no demotion took back, which must be the one that the
/// closing record names. Its figures are those of its last accepted confirmation.
fn champion(chain: &Chain, closed: &Closed) -> Checked<Option<CertifiedChampion>> {
    let mut proposed: BTreeMap<String, Proposed> = BTreeMap::new();
    let mut confirmed: BTreeMap<Digest, Confirmed> = BTreeMap::new();
    let mut accepted: BTreeMap<String, Digest> = BTreeMap::new();
    let mut promoted: BTreeMap<String, (usize, Promoted)> = BTreeMap::new();
    let mut current: Option<String> = None;
    for (index, record) in chain.records().iter().enumerate() {
        match record.entry() {
            Ok(Entry::Proposed(body)) => {
                proposed.insert(body.candidate.clone(), body);
            }
            Ok(Entry::Confirmed(body)) => {
                if body.verdict.verdict == Decision::Accept {
                    accepted.insert(body.candidate.clone(), body.verdict_digest);
                }
                confirmed.insert(body.verdict_digest, body);
            }
            Ok(Entry::Promoted(body)) => {
                current = Some(body.candidate.clone());
                promoted.insert(body.candidate.clone(), (index, body));
            }
            Ok(Entry::Demoted(body)) => {
                let refused = confirmed.get(&body.verdict_digest).is_some_and(|confirmed| {
                    confirmed.candidate == body.candidate && confirmed.verdict.verdict != Decision::Accept
                });
                let follows = body
                    .champion
                    .as_ref()
                    .is_none_or(|next| promoted.contains_key(next));
                if !refused || !follows || current.as_ref() != Some(&body.candidate) {
                    let detail = "the demotion rests on no verdict that refused the champion";
                    return Err(damage(Cause::CertificateMismatch, chain.place(index), detail));
                }
                promoted.remove(&body.candidate);
                current = body.champion;
            }
            _ => {}
        }
    }
    if current != closed.champion {
        let detail = "the closing record names another champion than the last promotion";
        return Err(damage(Cause::ClosingMismatch, chain.end(), detail));
    }
    let Some((index, promoted)) = current.and_then(|id| promoted.remove(&id)) else {
        return Ok(None);
    };
    let id = promoted.candidate;
    let last = accepted.get(&id).and_then(|digest| confirmed.get(digest));
    let (Some(proposed), Some(promoting), Some(last)) =
        (proposed.get(&id), confirmed.get(&promoted.verdict_digest), last)
    else {
        let detail = "the promotion rests on no confirming verdict";
        return Err(damage(Cause::CertificateMismatch, chain.place(index), detail));
    };
    for (confirmed, named) in [(promoting, promoted.verdict_digest), (last, last.verdict_digest)] {
        let mut canonical = String::new();
        scan::compact(
            &serde_json::to_value(&confirmed.verdict).unwrap_or_default(),
            &mut canonical,
        );
        if Digest::of(canonical.as_bytes()) != named || confirmed.candidate != id {
            let detail = "a confirming verdict is not the one whose hash the record names";
            return Err(damage(Cause::CertificateMismatch, chain.place(index), detail));
        }
    }
    let verdict = &last.verdict;
    Ok(Some(CertifiedChampion {
        role: proposed.role,
        digest: proposed.digest,
        tree: promoted.tree,
        verdict: last.verdict_digest,
        tier: verdict.tier.clone(),
        isolation: verdict.isolation.clone(),
        speedup: promoting.verdict.speedup,
        over_baseline: verdict.over_baseline,
        over_flag_control: verdict.over_flag_control,
        id,
    }))
}
