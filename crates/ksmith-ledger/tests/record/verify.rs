//! Each way to damage or forge a run is found, and its place is named.

use std::fs;
use std::path::Path;

use ksmith_ledger::*;
use ksmith_task::Digest;
use proptest::prelude::*;

use crate::support::{self, Sample, copy, files, sample};

fn lines(run_dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(run_dir.join(LEDGER_FILE)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn put_lines(run_dir: &Path, lines: &[String]) {
    fs::write(
        run_dir.join(LEDGER_FILE),
        lines.iter().map(|line| format!("{line}\n")).collect::<String>(),
    )
    .unwrap();
}

/// What an attacker does who can write the folder: new numbers, links and hashes from record `from` on.
fn rehash(lines: &mut [String], from: usize) {
    let mut prev = match from {
        0 => GENESIS,
        _ => serde_json::from_str::<Record>(&lines[from - 1]).unwrap().hash,
    };
    for (seq, line) in lines.iter_mut().enumerate().skip(from) {
        let record: Record = serde_json::from_str(line).unwrap();
        let mut body = record.body;
        if record.kind == Kind::Closed {
            body["records"] = seq.into();
            body["head"] = prev.to_string().into();
        }
        let fields = format!(
            r#"{{"v":1,"seq":{seq},"time":"{}","kind":"{}","body":{},"prev":"{prev}""#,
            record.time,
            record.kind,
            canonical(&body)
        );
        prev = Digest::of(format!("{fields}}}").as_bytes());
        *line = format!(r#"{fields},"hash":"{prev}"}}"#);
    }
}

fn check(run_dir: &Path) -> Report {
    verify(run_dir, &VerifyOptions::default())
}

fn check_head(run_dir: &Path, head: Digest) -> Report {
    verify(
        run_dir,
        &VerifyOptions {
            head: Some(head.into()),
            ..VerifyOptions::default()
        },
    )
}

fn check_key(sample: &Sample) -> Report {
    verify(
        &sample.run_dir,
        &VerifyOptions {
            public_key: Some(sample.key.public()),
            ..VerifyOptions::default()
        },
    )
}

fn cause(report: &Report) -> Option<Cause> {
    report.damage.as_ref().map(|damage| damage.cause)
}

#[test]
fn an_untouched_run_is_intact_with_every_anchor() {
    let sample = sample();
    let report = verify(
        &sample.run_dir,
        &VerifyOptions {
            head: Some(sample.head.into()),
            public_key: Some(sample.key.public()),
            run: Some(support::RUN.into()),
        },
    );
    assert_eq!(report.damage, None);
    assert_eq!(report.state, RunState::Closed);
    assert_eq!(
        report.anchors,
        Anchors {
            head: true,
            head_digits: None,
            public_key: true
        }
    );
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_eq!(report.unreferenced_objects, 0);
    assert!(report.objects > 5);
    let claim = report.certificate.unwrap().claim;
    assert!(
        claim.contains("at least 7.90 times as fast as the task's baseline"),
        "{claim}"
    );
    assert!(
        claim.contains("at least 2.10 times as fast as the same baseline under the best flags"),
        "{claim}"
    );
    assert!(claim.ends_with(Scope::Cpu.sentence()), "{claim}");
}

#[test]
fn without_an_anchor_the_report_says_that_only_accidents_are_found() {
    assert!(check(&sample().run_dir).sentence().contains("only accidents"));
}

#[test]
fn a_flipped_byte_is_found_with_line_record_and_offset() {
    let sample = sample();
    let mut lines = lines(&sample.run_dir);
    let offset: usize = lines[..3].iter().map(|line| line.len() + 1).sum();
    lines[3] = lines[3].replace("one pass", "two pass");
    put_lines(&sample.run_dir, &lines);
    let damage = check(&sample.run_dir).damage.unwrap();
    assert_eq!(damage.cause, Cause::HashMismatch);
    let place = Place {
        file: LEDGER_FILE.into(),
        line: Some(4),
        seq: Some(3),
        offset: Some(offset as u64),
        object: None,
    };
    assert_eq!(damage.place, place);
}

#[test]
fn a_rewritten_and_rehashed_chain_is_found_by_head_and_by_signature() {
    let sample = sample();
    let mut lines = lines(&sample.run_dir);
    lines[3] = lines[3].replace("above 1.01", "above 0.50");
    rehash(&mut lines, 3);
    put_lines(&sample.run_dir, &lines);
    assert_eq!(
        cause(&check_head(&sample.run_dir, sample.head)),
        Some(Cause::HeadMismatch)
    );
    assert_eq!(cause(&check_key(&sample)), Some(Cause::HeadMismatch));
    // Without the certificate the forgery is perfect, and the check says that it had no anchor.
    fs::remove_file(sample.run_dir.join(CERTIFICATE_FILE)).unwrap();
    let report = check(&sample.run_dir);
    assert!(report.is_intact() && !report.anchors.head && !report.anchors.public_key);
    assert_eq!(cause(&check_key(&sample)), Some(Cause::CertificateUnreadable));
}

#[test]
fn a_chain_forged_and_signed_anew_is_found_by_the_known_key() {
    let sample = sample();
    let mut lines = lines(&sample.run_dir);
    lines[3] = lines[3].replace("above 1.01", "above 0.50");
    rehash(&mut lines, 3);
    put_lines(&sample.run_dir, &lines);
    let forger = KeyPair::open_or_create(&sample.folder.path().join("forger.key")).unwrap();
    let history = History::load(&sample.run_dir).unwrap();
    Certificate::of(&history)
        .unwrap()
        .sign(&forger)
        .write(&sample.run_dir)
        .unwrap();
    assert_eq!(cause(&check_key(&sample)), Some(Cause::OtherKey));
    assert_eq!(
        cause(&check_head(&sample.run_dir, sample.head)),
        Some(Cause::HeadMismatch)
    );
}

#[test]
fn a_dropped_tail_is_found_by_certificate_head_and_key() {
    let sample = sample();
    let lines = lines(&sample.run_dir);
    for kept in [1, lines.len() / 2, lines.len() - 1] {
        put_lines(&sample.run_dir, &lines[..kept]);
        assert_eq!(cause(&check(&sample.run_dir)), Some(Cause::DroppedTail), "{kept}");
        assert_eq!(cause(&check_key(&sample)), Some(Cause::DroppedTail), "{kept}");
        assert_eq!(
            cause(&check_head(&sample.run_dir, sample.head)),
            Some(Cause::HeadMismatch),
            "{kept}"
        );
    }
    fs::write(sample.run_dir.join(LEDGER_FILE), "").unwrap();
    assert_eq!(
        cause(&check_head(&sample.run_dir, sample.head)),
        Some(Cause::HeadMismatch)
    );
}

#[test]
fn records_added_behind_the_head_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = support::unclosed(&folder.path().join(support::RUN));
    let head = ledger.head();
    ledger
        .append(Note {
            text: "later".into(),
            data: serde_json::json!({}),
        })
        .unwrap();
    let report = check_head(ledger.run_dir(), head);
    assert_eq!(cause(&report), Some(Cause::RecordsAfterHead));
    assert_eq!(report.damage.unwrap().place.seq, Some(ledger.records() - 1));
}

#[test]
fn a_record_behind_the_closing_one_is_found() {
    let sample = sample();
    let mut lines = lines(&sample.run_dir);
    let last = lines.len();
    lines.push(lines[4].clone());
    rehash(&mut lines, last);
    put_lines(&sample.run_dir, &lines);
    let damage = check(&sample.run_dir).damage.unwrap();
    assert_eq!(
        (damage.cause, damage.place.seq),
        (Cause::OutOfPlace, Some(last as u64))
    );
}

#[test]
fn swapped_removed_and_repeated_records_are_found_at_their_place() {
    let sample = sample();
    let original = lines(&sample.run_dir);
    let mut swapped = original.clone();
    swapped.swap(5, 9);
    let mut removed = original.clone();
    removed.remove(5);
    let mut repeated = original.clone();
    repeated.insert(5, original[4].clone());
    for lines in [swapped, removed, repeated] {
        put_lines(&sample.run_dir, &lines);
        let damage = check(&sample.run_dir).damage.unwrap();
        assert_eq!((damage.cause, damage.place.line), (Cause::OutOfOrder, Some(6)));
    }
}

#[test]
fn a_replayed_old_run_is_found_by_head_and_by_run_id() {
    let old = sample();
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join("0802-090000-softmax");
    let head = support::close(support::unclosed(&run_dir), &old.key);
    fs::remove_dir_all(&run_dir).unwrap();
    copy(&old.run_dir, &run_dir);
    assert_eq!(cause(&check_head(&run_dir, head)), Some(Cause::HeadMismatch));
    let by_id = VerifyOptions {
        run: Some("0802-090000-softmax".into()),
        ..VerifyOptions::default()
    };
    assert_eq!(cause(&verify(&run_dir, &by_id)), Some(Cause::OtherRun));
    let report = check(&run_dir);
    assert!(
        report
            .warnings
            .iter()
            .any(|warning| warning.contains(support::RUN)),
        "{:?}",
        report.warnings
    );
}

#[test]
fn a_missing_or_changed_blob_is_found_with_the_record_that_names_it() {
    let sample = sample();
    for object in files(&sample.run_dir.join("objects")) {
        let path = sample.run_dir.join("objects").join(&object);
        let bytes = fs::read(&path).unwrap();
        let name = object.to_str().unwrap().replace('/', "");
        for damaged in [
            None,
            Some([&bytes[..], b"x"].concat()),
            Some([b"\0", &bytes[1..]].concat()),
        ] {
            let wanted = match &damaged {
                None => {
                    fs::remove_file(&path).unwrap();
                    Cause::ObjectMissing
                }
                Some(damaged) => {
                    fs::write(&path, damaged).unwrap();
                    Cause::ObjectDamaged
                }
            };
            let damage = check(&sample.run_dir).damage.unwrap();
            assert_eq!((damage.cause, damage.place.object), (wanted, name.parse().ok()));
            assert!(damage.place.seq.is_some());
        }
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(check(&sample.run_dir).damage, None);
}

#[test]
fn a_torn_last_line_is_interrupted_and_not_damage() {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join(support::RUN);
    let ledger = support::unclosed(&run_dir);
    let (head, records) = (ledger.head(), ledger.records());
    drop(ledger);
    let path = run_dir.join(LEDGER_FILE);
    let whole = fs::read(&path).unwrap();
    let torn = br#"{"v":1,"seq":99,"time":"2026-0"#;
    fs::write(&path, [&whole[..], torn].concat()).unwrap();
    let report = check(&run_dir);
    assert_eq!(
        (report.state, report.torn_bytes, report.damage),
        (RunState::Interrupted, torn.len() as u64, None)
    );
    // Opening sets the piece aside and says so in the record.
    let ledger = Ledger::open(&run_dir).unwrap();
    assert_eq!(ledger.records(), records + 1);
    let last = read_records(&run_dir).unwrap().pop().unwrap();
    assert_eq!(last.prev, head);
    let Entry::Interrupted(Interrupted {
        torn: Some(set_aside),
        ..
    }) = last.entry().unwrap()
    else {
        panic!("no interrupted record: {last:?}");
    };
    assert_eq!(set_aside.offset, whole.len() as u64);
    assert_eq!(ledger.objects().get(set_aside.line.blob).unwrap(), torn);
    let report = check_head(&run_dir, ledger.head());
    assert_eq!((report.state, report.damage), (RunState::Interrupted, None));
}

#[test]
fn a_death_at_any_byte_of_an_append_leaves_a_ledger_that_opens_with_all_earlier_records() {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join(support::RUN);
    drop(support::unclosed(&run_dir));
    let path = run_dir.join(LEDGER_FILE);
    let whole = fs::read(&path).unwrap();
    let start = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    let before = fs::read_to_string(&path).unwrap().lines().count() - 1;
    for length in (start..whole.len()).step_by(5) {
        fs::write(&path, &whole[..length]).unwrap();
        let ledger = Ledger::open(&run_dir).unwrap();
        let interrupted = usize::from(length > start);
        assert_eq!(ledger.records(), (before + interrupted) as u64, "cut at {length}");
        drop(ledger);
        assert_eq!(check(&run_dir).damage, None, "cut at {length}");
    }
}

#[test]
fn a_revealed_seed_that_was_not_committed_to_is_found() {
    let sample = sample();
    let mut lines = lines(&sample.run_dir);
    let last = lines.len() - 1;
    lines[last] = lines[last].replace(&"01".repeat(32), &"02".repeat(32));
    rehash(&mut lines, last);
    put_lines(&sample.run_dir, &lines);
    assert_eq!(cause(&check(&sample.run_dir)), Some(Cause::SeedMismatch));
}

#[test]
fn a_changed_certificate_lock_or_view_is_found() {
    let sample = sample();
    let cases = [
        (CERTIFICATE_FILE, "7.90", "9.90", Cause::BadSignature),
        (
            CERTIFICATE_FILE,
            "  \"certificate\"",
            "\t\"certificate\"",
            Cause::CertificateUnreadable,
        ),
        ("task.lock.json", "true", "null", Cause::LockedFileChanged),
        (views::CANDIDATES_FILE, "c0002", "c0009", Cause::ViewMismatch),
        (views::BENCHMARK_FILE, "820.0000", "990.0000", Cause::ViewMismatch),
    ];
    for (name, old, new, wanted) in cases {
        let path = sample.run_dir.join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(old), "{name} has no {old}");
        fs::write(&path, text.replacen(old, new, 1)).unwrap();
        assert_eq!(cause(&check(&sample.run_dir)), Some(wanted), "{name}");
        fs::write(&path, text).unwrap();
    }
}

#[test]
fn a_certificate_that_claims_more_than_the_ledger_is_found_although_its_signature_fits() {
    let sample = sample();
    let mut certificate = SignedCertificate::read(&sample.run_dir)
        .unwrap()
        .unwrap()
        .certificate;
    certificate.champion.as_mut().unwrap().over_baseline = support::speedup(99.0, 100.0, 101.0);
    certificate.claim = certificate.sentence();
    certificate.sign(&sample.key).write(&sample.run_dir).unwrap();
    assert_eq!(cause(&check_key(&sample)), Some(Cause::CertificateMismatch));
}

#[test]
fn a_promotion_without_a_confirming_verdict_is_found() {
    let sample = sample();
    let mut lines = lines(&sample.run_dir);
    let confirmed = lines
        .iter()
        .rposition(|line| line.contains(r#""kind":"confirmed""#))
        .unwrap();
    lines.remove(confirmed);
    rehash(&mut lines, confirmed);
    put_lines(&sample.run_dir, &lines);
    fs::remove_file(sample.run_dir.join(CERTIFICATE_FILE)).unwrap();
    let history = History::load(&sample.run_dir).unwrap();
    Certificate::of(&history)
        .unwrap()
        .sign(&sample.key)
        .write(&sample.run_dir)
        .unwrap();
    views::write(&sample.run_dir).unwrap();
    assert_eq!(cause(&check_key(&sample)), Some(Cause::CertificateMismatch));
}

#[test]
fn a_later_format_version_is_named_and_not_called_damage_of_the_line() {
    let sample = sample();
    let mut lines = lines(&sample.run_dir);
    lines[0] = lines[0].replacen("\"v\":1", "\"new\":0,\"v\":2", 1);
    put_lines(&sample.run_dir, &lines);
    let damage = check(&sample.run_dir).damage.unwrap();
    assert_eq!(damage.cause, Cause::UnknownVersion);
    assert!(damage.detail.contains("format version 2"), "{damage}");
}

/// What can happen to a folder by accident or by intent, short of forging the anchor.
#[derive(Debug, Clone)]
enum Harm {
    Flip {
        file: prop::sample::Index,
        byte: prop::sample::Index,
        bits: u8,
    },
    Cut {
        file: prop::sample::Index,
        at: prop::sample::Index,
    },
    Remove {
        file: prop::sample::Index,
    },
    Append {
        file: prop::sample::Index,
        bytes: Vec<u8>,
    },
    Swap {
        a: prop::sample::Index,
        b: prop::sample::Index,
    },
    Drop {
        from: prop::sample::Index,
    },
    Forge {
        line: prop::sample::Index,
        digit: prop::sample::Index,
    },
}

fn harm() -> impl Strategy<Value = Harm> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (index(), index(), 1..=255u8).prop_map(|(file, byte, bits)| Harm::Flip { file, byte, bits }),
        2 => (index(), index()).prop_map(|(file, at)| Harm::Cut { file, at }),
        1 => index().prop_map(|file| Harm::Remove { file }),
        1 => (index(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(file, bytes)| Harm::Append { file, bytes }),
        2 => (index(), index()).prop_map(|(a, b)| Harm::Swap { a, b }),
        1 => index().prop_map(|from| Harm::Drop { from }),
        4 => (index(), index()).prop_map(|(line, digit)| Harm::Forge { line, digit }),
    ]
}

/// Does the harm; `false` where it changes nothing that counts.
fn inflict(run_dir: &Path, harm: &Harm) -> bool {
    let all = files(run_dir);
    // A removed certificate or view is no damage to the record: it can be made anew from it.
    let vital = |path: &Path| path.starts_with("objects") || path == Path::new(LEDGER_FILE);
    match harm {
        Harm::Flip { file, byte, bits } => {
            let path = run_dir.join(file.get(&all));
            let mut bytes = fs::read(&path).unwrap();
            let at = byte.index(bytes.len());
            bytes[at] ^= bits;
            fs::write(path, bytes).unwrap();
        }
        Harm::Cut { file, at } => {
            let name = file.get(&all);
            let path = run_dir.join(name);
            let bytes = fs::read(&path).unwrap();
            fs::write(path, &bytes[..at.index(bytes.len())]).unwrap();
        }
        Harm::Remove { file } => {
            let name = file.get(&all);
            if !vital(name) {
                return false;
            }
            fs::remove_file(run_dir.join(name)).unwrap();
        }
        Harm::Append { file, bytes } => {
            let path = run_dir.join(file.get(&all));
            let old = fs::read(&path).unwrap();
            fs::write(path, [&old[..], bytes].concat()).unwrap();
        }
        Harm::Swap { a, b } => {
            let mut lines = lines(run_dir);
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
            put_lines(run_dir, &lines);
            return a != b;
        }
        Harm::Drop { from } => {
            let lines = lines(run_dir);
            put_lines(run_dir, &lines[..from.index(lines.len())]);
        }
        Harm::Forge { line, digit } => {
            let mut lines = lines(run_dir);
            let index = line.index(lines.len());
            let digits: Vec<usize> = lines[index]
                .bytes()
                .enumerate()
                .filter(|(_, b)| (b'1'..=b'8').contains(b))
                .map(|(at, _)| at)
                .collect();
            let at = *digit.get(&digits);
            let next = char::from(lines[index].as_bytes()[at] + 1);
            lines[index].replace_range(at..=at, &next.to_string());
            // A digit of `v` or of a digest may make the line unreadable; then the forger gives up and leaves it.
            if lines
                .iter()
                .all(|line| serde_json::from_str::<Record>(line).is_ok())
            {
                rehash(&mut lines, 0);
            }
            put_lines(run_dir, &lines);
            // A digit in `hash`, `prev`, `seq` is put right by the rehash: then nothing changed.
            return true;
        }
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_anywhere_is_found_with_the_head(harms in prop::collection::vec(harm(), 1..3)) {
        thread_local!(static SAMPLE: Sample = sample());
        SAMPLE.with(|sample| {
            let copied = tempfile::tempdir().unwrap();
            let run_dir = copied.path().join(support::RUN);
            copy(&sample.run_dir, &run_dir);
            let before: Vec<_> = files(&run_dir).iter().map(|file| fs::read(run_dir.join(file)).unwrap()).collect();
            for harm in &harms {
                if !run_dir.join(LEDGER_FILE).exists() || lines_unreadable(&run_dir) {
                    break;
                }
                inflict(&run_dir, harm);
            }
            let names = files(&run_dir);
            let after: Vec<_> = names.iter().map(|file| fs::read(run_dir.join(file)).unwrap()).collect();
            let report = check_head(&run_dir, sample.head);
            if before == after {
                prop_assert!(report.is_intact(), "{:?}", report.damage);
            } else {
                // A view cut back to an earlier state of itself lags and is warned of; everything else is damage.
                prop_assert!(!report.is_intact() || !report.warnings.is_empty() || !report.gaps.is_empty(), "{harms:?} was not found");
                if let Some(damage) = &report.damage {
                    prop_assert!(!damage.place.file.is_empty());
                }
            }
            Ok(())
        })?;
    }
}

fn lines_unreadable(run_dir: &Path) -> bool {
    let text = fs::read(run_dir.join(LEDGER_FILE)).unwrap();
    let Ok(text) = String::from_utf8(text) else {
        return true;
    };
    text.lines().count() == 0
        || text
            .lines()
            .any(|line| serde_json::from_str::<Record>(line).is_err())
}

#[test]
fn what_a_closed_run_lacks_and_what_nothing_vouches_for_stand_in_the_last_line() {
    let sample = sample();
    for (file, words) in [
        ("certificate.json", "nobody vouches for the confirmed champion"),
        ("benchmark.csv", "`benchmark.csv` is missing"),
        ("candidates.jsonl", "`candidates.jsonl` is missing"),
        ("task.lock.json", "`task.lock.json` is missing"),
    ] {
        assert!(!check(&sample.run_dir).sentence().contains(words));
        fs::remove_file(sample.run_dir.join(file)).unwrap();
        let report = check(&sample.run_dir);
        assert!(
            report.is_intact() && report.sentence().contains(words),
            "{}",
            report.sentence()
        );
    }
    fs::write(sample.run_dir.join("notes.txt"), "mine").unwrap();
    let sentence = check(&sample.run_dir).sentence();
    assert!(sentence.ends_with("Not covered: `notes.txt`."), "{sentence}");
}

#[test]
fn a_head_may_be_given_by_its_first_digits_and_the_last_line_says_so() {
    let sample = sample();
    let with = |digits: &str| {
        let options = VerifyOptions {
            head: Some(digits.parse().unwrap()),
            ..VerifyOptions::default()
        };
        verify(&sample.run_dir, &options)
    };
    let report = with(&sample.head.to_string()[..12]);
    assert_eq!(report.anchors.head_digits, Some(12));
    assert!(
        report.sentence().contains("12 digits of the head"),
        "{}",
        report.sentence()
    );
    assert_eq!(with(&sample.head.to_string()).anchors.head_digits, None);
    assert_eq!(cause(&with("000000000000")), Some(Cause::HeadMismatch));
    for wrong in ["", "12345678901", "no-hex-digits", &"0".repeat(65)] {
        assert!(wrong.parse::<verify::Head>().is_err(), "{wrong}");
    }
}
