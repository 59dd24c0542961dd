//! The format on disk does not drift: golden files, schemas, and a second reader made of shell tools.

use std::fs;
use std::path::{Path, PathBuf};

use ksmith_ledger::*;

use crate::support;

/// Compares with a committed file; `UPDATE_GOLDEN=1` writes it.
fn golden(path: PathBuf, text: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        wanted == text,
        "`{}` differs; if that is meant, raise the format version",
        path.display()
    );
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn a_run_of_format_version_1_is_written_as_ever_and_still_read() {
    let sample = support::sample();
    for name in [
        LEDGER_FILE,
        CERTIFICATE_FILE,
        views::CANDIDATES_FILE,
        views::BENCHMARK_FILE,
    ] {
        golden(
            here("tests/golden/v1").join(name),
            &fs::read_to_string(sample.run_dir.join(name)).unwrap(),
        );
    }
    let text = fs::read(here("tests/golden/v1").join(LEDGER_FILE)).unwrap();
    let scan = verify::scan(&text);
    assert_eq!(scan.damage, None);
    assert!(History::fold(&scan.records).unwrap().unwrap().closed.is_some());
}

#[test]
fn schemas_of_records_and_certificates_are_committed() {
    let record = schemars::schema_for!(Record);
    let entry = schemars::schema_for!(Entry);
    let certificate = schemars::schema_for!(SignedCertificate);
    for (name, schema) in [
        ("record", record),
        ("record-bodies", entry),
        ("certificate", certificate),
    ] {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        golden(here(&format!("../../schemas/ledger-{name}.schema.json")), &text);
    }
}

#[test]
fn every_kind_stands_in_the_docs_and_round_trips_by_name() {
    let docs = fs::read_to_string(here("../../docs/ledger.md")).unwrap();
    for kind in Kind::ALL {
        assert!(
            docs.contains(&format!("| `{kind}` |")),
            "docs/ledger.md does not list `{kind}`"
        );
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
}

#[test]
fn every_cause_of_damage_stands_in_the_docs() {
    let docs = fs::read_to_string(here("../../docs/ledger.md")).unwrap();
    let schema = serde_json::to_value(schemars::schema_for!(Cause)).unwrap();
    let variants = schema["oneOf"].as_array().unwrap();
    assert!(variants.len() > 20);
    for variant in variants {
        let name = variant["const"].as_str().unwrap();
        assert!(
            docs.contains(&format!("| `{name}` |")),
            "docs/ledger.md does not list `{name}`"
        );
    }
}

#[test]
fn sed_and_sha256sum_alone_find_the_hash_of_a_line() {
    let sample = support::sample();
    let script =
        r#"sed -n 4p "$1" | sed 's/,"hash":"[0-9a-f]*"}$/}/' | tr -d '\n' | sha256sum | cut -d ' ' -f 1"#;
    let output = std::process::Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(sample.run_dir.join(LEDGER_FILE))
        .output()
        .unwrap();
    let record = &read_records(&sample.run_dir).unwrap()[3];
    assert_eq!(
        String::from_utf8(output.stdout).unwrap().trim(),
        record.hash.to_string()
    );
}

#[test]
fn two_writers_cannot_open_one_ledger_and_a_closed_one_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join(support::RUN);
    let ledger = support::unclosed(&run_dir);
    assert!(matches!(Ledger::open(&run_dir), Err(LedgerError::InUse(_))));
    assert!(matches!(Ledger::create(&run_dir), Err(LedgerError::Exists(_))));
    support::close(ledger, &support::key(folder.path()));
    let note = Note {
        text: "late".into(),
        data: serde_json::Value::Null,
    };
    assert!(matches!(
        Ledger::open(&run_dir).unwrap().append(note),
        Err(LedgerError::Closed)
    ));
}

#[test]
fn a_record_that_names_an_unstored_blob_is_refused_and_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join(support::RUN);
    let mut ledger = support::unclosed(&run_dir);
    let before = fs::read(run_dir.join(LEDGER_FILE)).unwrap();
    let text = BlobRef {
        blob: ksmith_task::Digest::of(b"nowhere"),
        bytes: 7,
    };
    let draft = Draft {
        text,
        accepted: true,
        findings: vec![],
    };
    assert!(matches!(
        ledger.append(draft),
        Err(LedgerError::UnknownBlob { kind: "draft", .. })
    ));
    assert_eq!(fs::read(run_dir.join(LEDGER_FILE)).unwrap(), before);
}

#[test]
fn a_tree_comes_back_as_it_was_and_links_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir_all(source.join("sub")).unwrap();
    fs::write(source.join("a.c"), "a").unwrap();
    fs::write(source.join("sub/b.c"), [0xff, 0x00]).unwrap();
    let objects = ObjectStore::new(folder.path());
    let tree = objects.put_tree(&source).unwrap();
    assert_eq!((tree.files, tree.bytes), (2, 3));
    let back = folder.path().join("back");
    objects.extract(tree, &back).unwrap();
    assert_eq!(objects.put_tree(&back).unwrap(), tree);
    std::os::unix::fs::symlink("/etc/passwd", source.join("link")).unwrap();
    assert!(matches!(objects.put_tree(&source), Err(ObjectError::BadPath(_))));
    let outside = [("../x", &b"x"[..])];
    assert!(matches!(objects.put_files(outside), Err(ObjectError::BadPath(_))));
}
