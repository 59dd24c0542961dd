//! An exported champion: every file of its folder is held against its certificate.

use std::fs;

use ksmith_ledger::*;
use ksmith_task::Digest;

use crate::support::sample;

#[test]
fn every_file_of_an_export_is_held_against_its_certificate() {
    let sample = sample();
    let certificate = SignedCertificate::read(&sample.run_dir)
        .unwrap()
        .unwrap()
        .certificate;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("exported");
    let tree = certificate.champion.as_ref().unwrap().tree;
    ObjectStore::new(&sample.run_dir).extract(tree, &place).unwrap();
    let path = place.join(CERTIFICATE_FILE);
    fs::write(&path, "{}").unwrap();
    let held = |certificate: &Certificate| {
        verify::verify_export(&path, certificate).map_err(|damage| (damage.cause, damage.place.file))
    };
    let wrong = |file: &str| Err((Cause::ExportMismatch, file.to_owned()));
    let own = ["candidate.toml".to_owned(), "kernel.c".to_owned()];
    assert_eq!(held(&certificate).unwrap().checked, own);
    let mut locked = certificate.clone();
    let header = "void softmax(void);\n";
    locked
        .locks
        .insert(HEADER_LOCK.into(), Digest::of(header.as_bytes()));
    assert_eq!(held(&locked), wrong("softmax.h"));
    fs::write(place.join("softmax.h"), "void other(void);\n").unwrap();
    assert_eq!(held(&locked), wrong("softmax.h"));
    fs::write(place.join("softmax.h"), header).unwrap();
    assert_eq!(held(&locked).unwrap().checked.len(), 3);
    fs::write(place.join("kernel.c"), "void other(void) {}\n").unwrap();
    assert_eq!(held(&locked), wrong("candidate.toml"));
    fs::remove_file(place.join("softmax.h")).unwrap();
    assert_eq!(held(&locked), wrong("softmax.h"));
}

#[test]
fn files_that_an_export_did_not_write_are_named() {
    let sample = sample();
    let mut certificate = SignedCertificate::read(&sample.run_dir)
        .unwrap()
        .unwrap()
        .certificate;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("kernel.c", "void f(void) {}\n");
    write(
        "candidate.toml",
        "schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"f\"\n",
    );
    write("notes.md", "mine");
    let digest = ksmith_task::Candidate::load(folder.path()).unwrap().digest();
    certificate.champion.as_mut().unwrap().digest = digest;
    let found = verify::verify_export(&folder.path().join(CERTIFICATE_FILE), &certificate).unwrap();
    assert_eq!(found.checked, ["candidate.toml", "kernel.c"]);
    assert_eq!(found.extra, ["notes.md"]);
}
