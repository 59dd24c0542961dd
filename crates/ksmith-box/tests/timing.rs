//! How long a box takes from start to end; figures, printed and loosely bounded.

use std::time::{Duration, Instant};

use ksmith_box::{BoxSpec, Ended, Limits, Profile, Role, probe, run};

ksmith_box::intercept_tests!(self::intercept);

fn intercept() {
    ksmith_box::intercept_with(&[Role {
        name: "nothing",
        before: None,
        run: |_| 0,
    }]);
}

#[test]
fn a_box_stands_and_falls_within_a_tenth_of_a_second() {
    let started = Instant::now();
    let _ = probe();
    println!("probe: {:?}", started.elapsed());
    for (name, limits) in [
        ("with control groups", Limits::default()),
        (
            "without",
            Limits {
                memory_bytes: None,
                processes: None,
                ..Limits::default()
            },
        ),
    ] {
        let spec = BoxSpec::role("nothing", Profile::Worker).limits(limits);
        let mut times: Vec<Duration> = (0..20)
            .map(|_| {
                let finished = run(&spec).unwrap();
                assert_eq!(finished.ended, Ended::Exited(0));
                finished.wall
            })
            .collect();
        times.sort();
        println!("{name}: median {:?}, slowest {:?}", times[10], times[19]);
        assert!(times[10] < Duration::from_millis(100), "{times:?}");
    }
}
