//! The acceptance rule on recorded A/A timings (`testdata/aa`): every arm of a recording ran the same bytes.

use std::fs;
use std::path::Path;

use ksmith_judge::bench::Settings;
use ksmith_judge::bench::simulation::{Recording, Source, plain_plan, simulate};

fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/aa");
    let read = |file: &Path| Recording::from_text(&fs::read_to_string(file).ok()?).ok();
    let files = fs::read_dir(folder).expect("the folder of recordings");
    files
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|end| end == "txt"))
        .map(|file| read(&file).expect("a recording reads back"))
        .collect()
}

#[test]
fn recorded_equal_kernels_are_never_accepted() {
    let recordings = recordings();
    assert!(recordings.len() >= 3, "recordings of several lengths");
    for recording in &recordings {
        let tally = simulate(
            Source::Recording(recording, 0.0),
            &plain_plan(Settings::default()),
            60,
            21,
        );
        assert_eq!(
            (tally.judged, tally.accepted),
            (60, 0),
            "{}: {tally:?}",
            recording.name
        );
    }
}

/// The criterion holds for uncrowded machines. Recordings named `busy` were taken beside two CPUs' worth of other work
/// and are asked only that a 3 % faster kernel is not turned away as bounded below the floor.
#[test]
fn three_percent_is_accepted_on_quiet_recordings_and_not_turned_away_on_busy_ones() {
    for recording in &recordings() {
        let tally = simulate(
            Source::Recording(recording, 0.03),
            &plain_plan(Settings::default()),
            60,
            22,
        );
        if recording.name.ends_with("busy") {
            assert!(
                tally.decided + tally.undecided + tally.unjudged >= 54,
                "{}: {tally:?}",
                recording.name
            );
        } else {
            assert!(tally.accepted >= 57, "{}: {tally:?}", recording.name);
        }
    }
}

#[test]
fn recordings_are_small_and_read_back() {
    let mut bytes = 0;
    for recording in &recordings() {
        let text = recording.to_text();
        bytes += text.len();
        assert_eq!(Recording::from_text(&text).as_ref(), Ok(recording));
        assert!(recording.rounds() >= Settings::default().rounds_per_set as usize);
    }
    assert!(bytes < 300_000, "{bytes} bytes");
}
