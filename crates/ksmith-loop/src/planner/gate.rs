//! Mechanical gates of draft and plan: what must stand in them before any code is written.

use super::check::Check;
use super::plan::{LEFT_OUT, steps_of};

/// The six topics of a draft, in order.
pub const DRAFT_TOPICS: [&str; 6] = [
    "Baseline and how it was validated",
    "Risks and unknowns",
    "Directions ranked by value and risk",
    "First steps",
    "Commands",
    "Evidence needed to keep, revise or drop",
];

/// What a draft lacks; empty means that it passes.
pub fn check_draft(text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let sections = sections(text);
    for topic in DRAFT_TOPICS {
        match sections.iter().filter(|(title, _)| title == topic).count() {
            1 => {}
            0 => findings.push(format!("topic `{topic}` is missing")),
            _ => findings.push(format!("topic `{topic}` stands twice")),
        }
    }
    let body = |topic: usize| {
        sections
            .iter()
            .find(|(title, _)| *title == DRAFT_TOPICS[topic])
            .map_or(&[][..], |(_, lines)| lines.as_slice())
    };
    for (index, topic) in DRAFT_TOPICS.iter().enumerate() {
        let stands = sections.iter().any(|(title, _)| title == topic);
        if stands && items(body(index)).next().is_none() {
            findings.push(format!("topic `{topic}` says nothing"));
        }
    }
    if !body(0)
        .iter()
        .any(|line| line.chars().any(|c| c.is_ascii_digit()))
    {
        findings.push("the baseline's topic holds no figure".into());
    }
    for line in items(body(2)) {
        for word in ["value", "risk"] {
            if !line.contains(word) {
                findings.push(format!("a direction has no {word}: {line}"));
            }
        }
    }
    if !body(4).iter().any(|line| line.contains("`ksmith ")) {
        findings.push("the commands' topic holds no command".into());
    }
    for word in ["Keep", "Revise", "Drop"] {
        if !body(5).iter().any(|line| line.contains(word)) {
            findings.push(format!(
                "the evidence's topic does not say when to {}",
                word.to_lowercase()
            ));
        }
    }
    findings
}

/// What a plan lacks, given the draft that it follows; empty means that it passes.
pub fn check_plan(text: &str, draft: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let steps = steps_of(text);
    if steps.is_empty() {
        findings.push("the plan has no step".into());
    }
    for (index, step) in steps.iter().enumerate() {
        let number = index + 1;
        if step.step.is_empty() {
            findings.push(format!("step {number} says nothing"));
        }
        if step.criterion.is_empty() {
            findings.push(format!("step {number} has no criterion"));
        } else if !step.criterion.contains('`') && !step.criterion.chars().any(|c| c.is_ascii_digit()) {
            findings.push(format!(
                "the criterion of step {number} names neither a record, a code nor a figure"
            ));
        }
        for (name, text) in [("pass", &step.passes), ("fail", &step.fails)] {
            match text.parse::<Check>() {
                Ok(_) => {}
                Err(_) if text.is_empty() => findings.push(format!("step {number} has no check to {name}")),
                Err(error) => findings.push(format!("the check to {name} of step {number}: {error}")),
            }
        }
        if !step.passes.is_empty() && step.passes == step.fails {
            findings.push(format!("step {number} passes and fails by the same check"));
        }
    }
    let left_out = quoted_items(text, LEFT_OUT);
    for direction in directions_of(draft) {
        let has_step = steps
            .iter()
            .any(|step| step.step.contains(&format!("`{direction}`")));
        if !has_step && !left_out.contains(&direction) {
            findings.push(format!("direction `{direction}` of the draft has no step"));
        }
    }
    findings
}

/// Names of a draft's directions: the first quoted word of each item.
fn directions_of(draft: &str) -> Vec<String> {
    quoted_items(draft, DRAFT_TOPICS[2])
}

/// The first quoted word of each item of a section.
fn quoted_items(text: &str, section: &str) -> Vec<String> {
    let sections = sections(text);
    let lines = sections
        .iter()
        .find(|(title, _)| title == section)
        .map_or(&[][..], |(_, lines)| lines);
    items(lines)
        .filter_map(|line| Some(line.split('`').nth(1)?.to_owned()))
        .collect()
}

fn sections(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut sections: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            sections.push((title.trim().to_owned(), Vec::new()));
        } else if let Some((_, lines)) = sections.last_mut() {
            lines.push(line);
        }
    }
    sections
}

/// Lines that are list items.
fn items<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    lines.iter().copied().map(str::trim).filter(|line| {
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        (line.starts_with("- ") || (number.len() < line.len() && number.starts_with(". "))) && line.len() > 8
    })
}

#[cfg(test)]
mod tests {
    use super::super::{DraftFacts, WorkloadFact, draft, plan, plan_steps};
    use super::*;
    use crate::writer::Direction;

    fn facts() -> DraftFacts {
        DraftFacts {
            instance: "softmax[T=f32]".into(),
            task: "tasks/softmax".into(),
            goal: 0.25,
            machine: vec!["2 CPUs, AVX-512".into()],
            gates: vec!["compile".into(), "hidden".into()],
            workloads: vec![WorkloadFact {
                name: "host".into(),
                sizes: "rows 64, cols 1024".into(),
                median_us: Some(412.0),
                bytes: 524_288.0,
                flops: 524_288.0,
            }],
            warnings: vec!["the clock is not fixed".into()],
            directions: vec![
                Direction {
                    name: "vector-exp".into(),
                    idea: "a polynomial exp over whole vectors".into(),
                    value: 6.0,
                    risk: "its error".into(),
                },
                Direction {
                    name: "threads".into(),
                    idea: "rows in parallel".into(),
                    value: 1.5,
                    risk: "start-up cost".into(),
                },
            ],
            left_out: Vec::new(),
            budget: "60 s, 5 scorings".into(),
        }
    }

    #[test]
    fn the_template_planner_passes_its_own_gates() {
        let facts = facts();
        let draft = draft(&facts);
        assert_eq!(check_draft(&draft), Vec::<String>::new());
        let plan = plan(&facts, &plan_steps(&facts));
        assert_eq!(check_plan(&plan, &draft), Vec::<String>::new());
        assert_eq!(steps_of(&plan), plan_steps(&facts));
    }

    #[test]
    fn a_draft_without_a_topic_or_with_an_empty_one_is_refused() {
        let whole = draft(&facts());
        for topic in DRAFT_TOPICS {
            let renamed = whole.replace(&format!("## {topic}\n"), "## Something else\n");
            assert!(
                check_draft(&renamed).contains(&format!("topic `{topic}` is missing")),
                "{topic}"
            );
        }
        let start = whole.find("## First steps").unwrap();
        let end = whole.find("## Commands").unwrap();
        let emptied = format!("{}## First steps\n\n{}", &whole[..start], &whole[end..]);
        assert_eq!(check_draft(&emptied), ["topic `First steps` says nothing"]);
    }

    #[test]
    fn a_plan_step_without_a_decidable_criterion_is_refused() {
        let draft = draft(&facts());
        let text = plan(&facts(), &plan_steps(&facts()));
        let vague = text.replace(
            "- Criterion: one of six flag sets",
            "- Criterion: it feels fast\n- Was: one of six",
        );
        assert_eq!(
            check_plan(&vague, &draft),
            ["the criterion of step 1 names neither a record, a code nor a figure"]
        );
        let mut without = facts();
        without.directions.pop();
        without.left_out = vec![("threads".into(), "it promises little".into())];
        let shorter = plan(&without, &plan_steps(&without));
        assert_eq!(check_plan(&shorter, &draft), Vec::<String>::new());
        let forgotten = text.replace("`threads`", "`thread`");
        assert_eq!(
            check_plan(&forgotten, &draft),
            ["direction `threads` of the draft has no step"]
        );
        assert_eq!(check_plan("# Plan", "")[0], "the plan has no step");
    }

    #[test]
    fn a_plan_step_needs_a_check_to_pass_and_another_to_fail() {
        let draft = draft(&facts());
        let text = plan(&facts(), &plan_steps(&facts()));
        let passes = "- Passes: `decided role=flag-control`";
        for (change, finding) in [
            ("", "step 1 has no check to pass"),
            (
                "- Passes: `left role=flag-control >= 6`",
                "step 1 passes and fails by the same check",
            ),
        ] {
            assert_eq!(check_plan(&text.replace(passes, change), &draft), [finding]);
        }
        let vague = check_plan(&text.replace(passes, "- Passes: `it works`"), &draft);
        assert!(vague[0].starts_with("the check to pass of step 1: "), "{vague:?}");
    }
}
