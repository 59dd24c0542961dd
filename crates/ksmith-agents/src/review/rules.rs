//! The built-in reviewer: rules over the record and the source, no model and no network.
//!
//! It objects only where the record itself does not carry a crown. What it sees in the source is advice, since the
//! judge's gates, not these rules, say whether a kernel is right.

use serde_json::Value;

use super::answer::{Answer, Finding, Next, Weight, Word};
use super::attempt::Held;
use super::contract::{ContractAnswer, ContractRequest, FoundAmbiguity, class_name};
use super::occasion::Occasion;
use super::plan::{Critique, PlanChange, PlanRequest};
use super::request::Request;
use super::reviewer::{Review, Reviewer, Verdict};
use super::vendor::{Identity, Vendor};
use crate::process::normalised;

/// The built-in reviewer.
#[derive(Debug, Clone)]
pub struct RulesReviewer {
    identity: Identity,
}

impl Default for RulesReviewer {
    fn default() -> Self {
        Self {
            identity: Identity {
                name: "lint".into(),
                vendor: Vendor::NoModel,
            },
        }
    }
}

fn finding(key: &str, weight: Weight, location: &str, text: &str, evidence: String) -> Finding {
    Finding {
        key: key.into(),
        weight,
        location: location.into(),
        text: text.into(),
        evidence,
    }
}

/// What of the record does not carry a crown.
fn record_findings(request: &Request) -> Vec<Finding> {
    let evidence = &request.evidence;
    let mut findings = Vec::new();
    let mut object = |key: &str, text: &str, seen: String| {
        findings.push(finding(key, Weight::Blocking, "evidence.json", text, seen));
    };
    let decision = evidence["verdict"].as_str().unwrap_or("none");
    if decision != "accept" {
        object(
            "not-accepted",
            "The judge did not accept it.",
            format!("verdict: {decision}"),
        );
    }
    let gates = evidence["gates"].as_array().map_or(&[][..], Vec::as_slice);
    if gates.is_empty() {
        object("no-gates", "The record holds no gate.", "gates: []".into());
    }
    for gate in gates {
        let result = gate["result"].as_str().unwrap_or("none");
        if !matches!(result, "pass" | "skipped") {
            let name = gate["name"].as_str().unwrap_or("unknown");
            object(
                "gate-not-passed",
                "A gate did not pass.",
                format!("{name}: {result}"),
            );
            break;
        }
    }
    let judged = evidence["candidate"].as_str().unwrap_or("none");
    if judged != request.subject.source.to_string() {
        object(
            "other-files-judged",
            "The verdict is about other files than those under review.",
            format!("candidate: {judged}"),
        );
    }
    let lower = evidence["speedup"]["lower"].as_f64().unwrap_or(0.0);
    if lower <= 1.0 {
        object(
            "no-gain-shown",
            "The lower bound of the gain is not above one.",
            format!("speedup.lower: {lower}"),
        );
    }
    findings
}

/// What of the source is worth a look.
fn source_findings(request: &Request) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in request.source.iter().filter(|(path, _)| !path.ends_with(".toml")) {
        let tokens = normalised(text);
        let mut advise = |key: &str, text: &str, seen: &str| {
            findings.push(finding(key, Weight::Advice, path, text, seen.to_owned()));
        };
        if let Some(name) = mutable_state(&tokens) {
            advise(
                "state-between-calls",
                "Memory that outlives a call can carry results from one call to the next.",
                &name,
            );
        }
        if tokens
            .iter()
            .any(|token| matches!(token.as_str(), "asm" | "__asm__" | "__asm"))
        {
            advise(
                "inline-assembly",
                "Assembly is not seen by the sanitizers.",
                "asm",
            );
        }
    }
    if let (Some(measured), Some(predicted)) = (
        request.evidence["speedup"]["point"].as_f64(),
        request.evidence["predicted"].as_f64(),
    ) && measured > 2.0 * predicted
    {
        findings.push(finding(
            "surprising-gain",
            Weight::Advice,
            "evidence.json",
            "The gain is more than twice what was predicted: the stated idea may not be its cause.",
            format!("measured {measured:.2}, predicted {predicted:.2}"),
        ));
    }
    // One line for each kind of remark, however many files show it.
    findings.sort_by(|a, b| a.key.cmp(&b.key));
    findings.dedup_by(|a, b| a.key == b.key);
    findings
}

/// The first word after `static` or `thread_local` of something that is neither constant nor a function.
fn mutable_state(tokens: &[String]) -> Option<String> {
    tokens.iter().enumerate().find_map(|(at, token)| {
        if !matches!(
            token.as_str(),
            "static" | "thread_local" | "_Thread_local" | "__thread"
        ) {
            return None;
        }
        let declaration = &tokens[at + 1..];
        let end = declaration
            .iter()
            .position(|token| matches!(token.as_str(), ";" | "=" | "(" | "{"))?;
        let is_constant = declaration[..end]
            .iter()
            .any(|token| matches!(token.as_str(), "const" | "constexpr" | "inline"));
        let is_function = matches!(declaration[end].as_str(), "(" | "{");
        (!is_constant && !is_function).then(|| declaration[..end].join(" "))
    })
}

fn crown(request: &Request) -> Answer {
    let mut findings = record_findings(request);
    let objects = !findings.is_empty();
    findings.extend(source_findings(request));
    Answer {
        word: if objects { Word::Veto } else { Word::Pass },
        findings,
        next: None,
    }
}

fn course(request: &Request) -> Answer {
    let evidence = &request.evidence;
    let text = |key: &str| evidence[key].as_str().unwrap_or_default().to_owned();
    let direct = |direction: String, edit: String| Answer {
        word: Word::Direct,
        findings: Vec::new(),
        next: Some(Next { direction, edit }),
    };
    match request.occasion {
        Occasion::Done if evidence["goal_met"] != Value::Bool(true) => Answer {
            word: Word::Veto,
            findings: vec![finding(
                "goal-not-shown",
                Weight::Blocking,
                "evidence.json",
                "No confirmed record shows that the goal is met.",
                format!("goal_met: {}", evidence["goal_met"]),
            )],
            next: None,
        },
        Occasion::SameReason => direct(
            text("direction"),
            format!(
                "Remove the cause of `{}` first, in the smallest change that shows it.",
                text("code")
            ),
        ),
        Occasion::Plateau => direct(
            "another family".into(),
            "Leave the directions that were tried since the last gain.".into(),
        ),
        Occasion::Done
        | Occasion::HalfBudget
        | Occasion::NineTenths
        | Occasion::Crown
        | Occasion::Plan
        | Occasion::Contract => Answer {
            word: Word::Pass,
            findings: Vec::new(),
            next: None,
        },
    }
}

impl Reviewer for RulesReviewer {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn review(&mut self, request: &Request) -> Review {
        let answer = match request.occasion {
            Occasion::Crown => crown(request),
            Occasion::SameReason
            | Occasion::Plateau
            | Occasion::HalfBudget
            | Occasion::NineTenths
            | Occasion::Done
            | Occasion::Plan
            | Occasion::Contract => course(request),
        };
        Review {
            verdict: Verdict::Given(answer),
            attempts: Vec::new(),
        }
    }

    fn contract(&mut self, request: &ContractRequest) -> Held<ContractAnswer> {
        let ambiguities = request
            .classes
            .iter()
            .filter(|class| !class.settled)
            .map(|class| FoundAmbiguity {
                key: class_name(class.class),
                class: class_name(class.class),
                place: class.keys.join(", "),
                question: class.class.question().to_owned(),
                readings: vec![
                    format!("as things stand: {}", class.answer),
                    format!("as {} would say", class.keys.join(", ")),
                ],
                suggestion: format!(
                    "write {} into the contract, or resolve as it stands",
                    class.keys.join(", ")
                ),
            })
            .collect();
        Held {
            answer: Some(ContractAnswer {
                ambiguities,
                checked: ksmith_task::Class::ALL.into_iter().map(class_name).collect(),
            }),
            attempts: Vec::new(),
        }
    }

    /// Asks for the most promising direction first, and leaves out those that promise nothing where others do.
    fn plan(&mut self, request: &PlanRequest) -> Held<Critique> {
        let mut critique = Critique::default();
        let best = request
            .directions
            .iter()
            .reduce(|best, other| if other.1 > best.1 { other } else { best });
        if let (Some(best), Some(first)) = (best, request.directions.first())
            && best.1 > first.1
        {
            critique.required.push(PlanChange::First {
                direction: best.0.clone(),
                why: format!("it promises {:.2}x, the first one {:.2}x", best.1, first.1),
            });
        }
        if best.is_some_and(|best| best.1 > 1.0) {
            for (direction, value) in request.directions.iter().filter(|(_, value)| *value < 1.0) {
                critique.required.push(PlanChange::Drop {
                    direction: direction.clone(),
                    why: format!("it promises a loss ({value:.2}x)"),
                });
            }
        }
        Held {
            answer: Some(critique),
            attempts: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use ksmith_task::Digest;
    use serde_json::json;

    use super::*;
    use crate::review::Subject;

    fn request(evidence: Value) -> Request {
        Request {
            occasion: Occasion::Crown,
            subject: Subject {
                task: Digest::of(b"t"),
                source: Digest::of(b"s"),
                judge: Digest::of(b"j"),
            },
            candidate: Some("c0001".into()),
            contract: String::new(),
            change: String::new(),
            source: vec![("kernel.c".into(), "void f(float *y) { y[0] = 1; }".into())],
            evidence,
            profile: String::new(),
            course: String::new(),
            known: Vec::new(),
            round: 1,
            prose: String::new(),
        }
    }

    fn good() -> Value {
        json!({
            "verdict": "accept", "candidate": Digest::of(b"s"), "speedup": { "point": 1.5, "lower": 1.4, "upper": 1.6 },
            "predicted": 1.5, "gates": [{ "name": "compile", "result": "pass" }, { "name": "traces", "result": "skipped" }],
        })
    }

    fn said(request: &Request) -> Answer {
        match RulesReviewer::default().review(request).verdict {
            Verdict::Given(answer) => answer,
            Verdict::NotPassed(cause) => panic!("{cause}"),
        }
    }

    #[test]
    fn a_whole_record_passes_and_each_hole_in_it_is_an_objection() {
        assert_eq!(said(&request(good())).word, Word::Pass);
        for (key, change) in [
            ("not-accepted", json!({ "verdict": "revise" })),
            ("no-gates", json!({ "gates": [] })),
            (
                "gate-not-passed",
                json!({ "gates": [{ "name": "hidden", "result": "error" }] }),
            ),
            ("other-files-judged", json!({ "candidate": Digest::of(b"old") })),
            ("no-gain-shown", json!({ "speedup": { "lower": 1.0 } })),
        ] {
            let mut evidence = good();
            for (field, value) in change.as_object().unwrap() {
                evidence[field] = value.clone();
            }
            let answer = said(&request(evidence));
            assert_eq!(answer.word, Word::Veto, "{key}");
            assert_eq!(answer.findings[0].key, key);
        }
    }

    #[test]
    fn source_remarks_are_advice() {
        let mut request = request(good());
        let advice = |request: &Request| {
            let answer = said(request);
            assert_eq!(answer.word, Word::Pass);
            answer
                .findings
                .into_iter()
                .map(|found| found.key)
                .collect::<Vec<_>>()
        };
        for (text, keys) in [
            (
                "static float cache[16]; void f(void) {}",
                vec!["state-between-calls"],
            ),
            (
                "static const float table[2] = {1, 2}; static inline float g(float x) { return x; }",
                vec![],
            ),
            (
                "static void h(int n) { __asm__(\"nop\"); }",
                vec!["inline-assembly"],
            ),
        ] {
            request.source[0].1 = text.into();
            assert_eq!(advice(&request), keys, "{text}");
        }
        request.source[0].1 = String::new();
        request.evidence["predicted"] = json!(0.5);
        assert_eq!(advice(&request), ["surprising-gain"]);
    }

    #[test]
    fn being_done_needs_a_record_of_the_goal() {
        let mut request = request(json!({ "goal_met": false }));
        request.occasion = Occasion::Done;
        assert_eq!(said(&request).word, Word::Veto);
        request.evidence = json!({ "goal_met": true });
        assert_eq!(said(&request).word, Word::Pass);
    }

    #[test]
    fn the_template_critic_settles_a_sorted_plan_and_sorts_another() {
        let plan = |directions: &[(&str, f64)]| PlanRequest {
            subject: request(Value::Null).subject,
            contract: String::new(),
            draft: String::new(),
            plan: String::new(),
            directions: directions
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
            decided: Vec::new(),
            round: 1,
        };
        let mut critic = RulesReviewer::default();
        let mut said = |directions: &[(&str, f64)]| critic.plan(&plan(directions)).answer.unwrap();
        assert!(said(&[("a", 3.0), ("b", 1.0)]).is_settled());
        let required = said(&[("a", 1.5), ("b", 3.0), ("c", 0.8)]).required;
        assert!(matches!(&required[0], PlanChange::First { direction, .. } if direction == "b"));
        assert!(matches!(&required[1], PlanChange::Drop { direction, .. } if direction == "c"));
    }
}
