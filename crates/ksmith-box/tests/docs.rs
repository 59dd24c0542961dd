//! The list of system calls in the documentation is the one that the filter is made of.

use ksmith_box::{Profile, allow_list_markdown};

const MARK: &str = "Generated from the tables in `ksmith-box`. Everything not listed ends the box, except in the last table.\n";

fn generated() -> String {
    [
        ("Worker with one thread", Profile::Worker),
        ("Worker with threads", Profile::WorkerThreads),
        ("Compilers, references", Profile::Compiler),
        ("Worker with a GPU", Profile::Device),
        ("Agents: refusals; everything else is allowed", Profile::Agent),
    ]
    .iter()
    .map(|(title, profile)| format!("\n### {title}\n\n{}", allow_list_markdown(*profile)))
    .collect()
}

#[test]
fn the_documented_call_list_is_the_real_one() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/worker.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, tail) = text.split_once(MARK).expect("the mark stands in docs/worker.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{MARK}{}", generated())).unwrap();
    } else {
        assert!(
            tail == generated(),
            "run `UPDATE_DOCS=1 cargo test -p ksmith-box --test docs`"
        );
    }
}
