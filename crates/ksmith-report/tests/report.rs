//! Page and tables of a made-up run: what must stand in them, and what must never.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../ksmith-ledger/tests/support/mod.rs"]
mod support;

use ksmith_ledger::{Ledger, Scope, VerifyOptions, lookup, verify};
use ksmith_report::html::Links;
use ksmith_report::{RunView, html, table};

fn page() -> String {
    html::report(&RunView::load(&support::sample().run_dir).unwrap(), Links::Alone)
}

/// The text of all headings, in order.
fn headings(page: &str) -> Vec<String> {
    let starts = page.match_indices("<h2").map(|(at, _)| &page[at..]);
    starts
        .map(|rest| {
            let inner = &rest[rest.find('>').unwrap() + 1..rest.find("</h2>").unwrap()];
            inner.replace("<code>", "").replace("</code>", "")
        })
        .collect()
}

#[test]
fn the_page_has_its_sections_in_order() {
    let page = page();
    // For a look at it in a browser: KEEP_REPORT names a file.
    if let Some(path) = std::env::var_os("KEEP_REPORT") {
        std::fs::write(path, &page).unwrap();
    }
    assert_eq!(
        headings(&page),
        [
            "What was proved",
            "What was not",
            "Gains",
            "Claim",
            "Candidates",
            "Gates passed by c0003",
            "What changed against the baseline",
            "What physics allows",
            "Contract",
            "Machine and run",
            "How to verify",
        ]
    );
    assert!(
        page.contains("at least 7.90 times as fast as the task&#39;s baseline")
            || page.contains("at least 7.90 times as fast as the task's baseline")
    );
    for part in [
        "7.90×",
        "2.10×",
        "over the flag control",
        "times the floor",
        "ksmith verify 0801-120000-softmax --head ",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert_eq!(
        page.matches("class=\"bar").count(),
        3,
        "one bar per measured candidate"
    );
    assert!(
        page.matches(Scope::Cpu.sentence()).count() >= 4,
        "each result carries its scope"
    );
}

#[test]
fn the_page_loads_nothing_runs_nothing_and_escapes_everything() {
    let page = page();
    assert!(!page.contains("<script") && !page.contains("javascript:") && !page.contains(" src="));
    assert!(!page.contains("url(") && !page.contains("@import"));
    assert!(
        page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"),
        "the hostile hypothesis is shown, as text"
    );
    assert!(!page.contains('\u{1b}') && !page.contains('\u{9b}'));
    assert!(page.contains("default-src 'none'") || page.contains("default-src &#39;none&#39;"));
}

/// The targets of all links.
fn targets(page: &str) -> Vec<String> {
    page.split("href=\"")
        .skip(1)
        .map(|rest| rest[..rest.find('"').unwrap()].to_owned())
        .collect()
}

#[test]
fn every_link_works_without_a_network() {
    let sample = support::sample();
    let view = RunView::load(&sample.run_dir).unwrap();
    let alone = html::report(&view, Links::Alone);
    let beside = html::report(&view, Links::RunFolder);
    assert!(targets(&beside).len() > targets(&alone).len() && !targets(&alone).is_empty());
    for target in targets(&alone).iter().chain(&targets(&beside)) {
        match target.strip_prefix('#') {
            Some(id) => assert!(alone.contains(&format!("id=\"{id}\"")), "{target} leads nowhere"),
            None => assert!(
                sample.run_dir.join(target).is_file(),
                "{target} is no file of the run"
            ),
        }
    }
    assert!(targets(&beside).contains(&"certificate.json".to_owned()));
}

#[test]
fn the_first_page_says_what_was_proved_and_what_not_with_both_gains_and_the_floor() {
    let page = page();
    let first = &page[..page.find("id=\"candidates\"").unwrap()];
    for part in [
        "Every element of every hidden case",
        "At least 7.90 times as fast",
        "At least 2.10 times as fast",
        "the time of moving its bytes",
        "another machine, another compiler",
        "Gains below 1 %",
        Scope::Cpu.sentence(),
    ] {
        assert!(first.contains(part), "{part} is missing");
    }
}

#[test]
fn a_gain_that_was_not_bounded_stands_among_what_was_not_proved() {
    let mut view = RunView::load(&support::sample().run_dir).unwrap();
    let id = view.history.champion.clone().unwrap();
    for candidate in view
        .history
        .candidates
        .iter_mut()
        .filter(|found| found.id() == id)
    {
        for confirmed in &mut candidate.confirmed {
            confirmed.verdict.over_flag_control = support::speedup(0.98, 1.01, 1.04);
        }
    }
    let page = html::report(&view, Links::Alone);
    let (proved, not) = page.split_once("id=\"not-proved\"").unwrap();
    assert!(!proved.contains("Faster than better flags"));
    assert!(not.contains("Faster than the baseline under better flags: not shown"));
    assert!(not.contains("Between 0.98 and 1.04 times as fast"));
}

#[test]
fn every_element_that_is_opened_is_closed() {
    let page = page();
    let mut open: Vec<&str> = Vec::new();
    for piece in page.split('<').skip(1) {
        let tag = &piece[..piece.find(['>', ' ']).unwrap()];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !matches!(tag, "!DOCTYPE" | "meta" | "br") {
            open.push(tag);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_run_without_a_sandbox_says_so_loudly_on_page_and_table() {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join("loose");
    let mut ledger = Ledger::create(&run_dir).unwrap();
    let mut opened = support::opened(ledger.objects(), "loose");
    opened.unsandboxed = true;
    opened.isolation = "none".into();
    ledger.append(opened).unwrap();
    let view = RunView::load(&run_dir).unwrap();
    let page = html::report(&view, Links::Alone);
    assert!(page.contains("class=\"alarm\"") && page.contains("WITHOUT A SANDBOX"));
    assert!(page.contains("not closed") && page.contains("nothing was measured so far"));
    assert!(table::summary(&view, 100).contains("WITHOUT A SANDBOX"));
}

#[test]
fn tables_are_clean_and_carry_the_scope() {
    let sample = support::sample();
    let view = RunView::load(&sample.run_dir).unwrap();
    let shown = lookup::show(&sample.run_dir, &view.history, "c0005").unwrap();
    let champion = lookup::show(&sample.run_dir, &view.history, "champion").unwrap();
    let diff = lookup::diff(&sample.run_dir, &view.history, "baseline", "c0003").unwrap();
    let tables = [
        table::summary(&view, 100),
        table::log(&view.history, 140),
        table::show(&shown, 100),
        table::show(&champion, 100),
        table::diff(&diff, 100),
    ];
    for text in &tables {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{9b}'), "{text}");
        assert!(text.contains(Scope::Cpu.sentence()), "{text}");
    }
    assert!(
        tables[0].contains("8.20 (7.90 to 8.50)") && tables[0].contains("2.25 (2.10 to 2.40)"),
        "{}",
        tables[0]
    );
    let report = verify(
        &sample.run_dir,
        &VerifyOptions {
            head: Some(sample.head.into()),
            ..VerifyOptions::default()
        },
    );
    let text = table::verification(&report, 100);
    assert!(
        text.contains("Intact") && text.contains("ends in the head you gave"),
        "{text}"
    );
}

#[test]
fn test_says_correct_or_not_and_never_a_verdict_on_speed() {
    let digest = ksmith_task::Digest::of(b"candidate");
    let code = "gain/not-measured";
    let honest = support::verdict(digest, ksmith_ledger::Decision::Revise, code, Vec::new());
    let text = table::proof(&honest, None, 100);
    assert!(text.contains("correct: every gate passed; not timed"), "{text}");
    assert!(!text.contains("revise") && !text.contains(code), "{text}");
    let wrong = table::proof(&honest, Some("hidden/wrong-value"), 100);
    assert!(wrong.contains("not correct (hidden/wrong-value)"), "{wrong}");
    let mute = support::verdict(
        digest,
        ksmith_ledger::Decision::Error,
        "smoke/could-not-run",
        Vec::new(),
    );
    assert!(table::proof(&mute, None, 100).contains("no statement (smoke/could-not-run)"));
}
