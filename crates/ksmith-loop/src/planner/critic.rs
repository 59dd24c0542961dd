//! What a critic's changes do to the directions of a draft.

use ksmith_agents::review::PlanChange;

use crate::writer::Direction;

/// Makes the changes; says what could not be made.
pub fn apply(directions: &mut Vec<Direction>, changes: &[PlanChange]) -> Vec<String> {
    let mut refused = Vec::new();
    for change in changes {
        match change {
            PlanChange::First { direction, .. } => {
                match directions.iter().position(|found| found.name == *direction) {
                    Some(at) => directions[..=at].rotate_right(1),
                    None => refused.push(format!("there is no direction `{direction}` to put first")),
                }
            }
            PlanChange::Drop { direction, .. } => {
                let known = directions.iter().any(|found| found.name == *direction);
                if !known {
                    refused.push(format!("there is no direction `{direction}` to leave out"));
                } else if directions.len() == 1 {
                    refused.push(format!("`{direction}` is the only direction"));
                } else {
                    directions.retain(|found| found.name != *direction);
                }
            }
            PlanChange::Add {
                direction,
                idea,
                risk,
            } => {
                if directions.iter().any(|found| found.name == *direction) {
                    refused.push(format!("`{direction}` stands there already"));
                } else {
                    directions.push(Direction {
                        name: direction.clone(),
                        idea: one_line(idea),
                        // Nothing is known of it: it promises what the baseline has.
                        value: 1.0,
                        risk: one_line(risk),
                    });
                }
            }
        }
    }
    refused
}

/// A foreign text as one line without quotes, so that it adds no item or direction to a document.
fn one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Direction {
        Direction {
            name: name.into(),
            idea: "an idea".into(),
            value: 2.0,
            risk: "a risk".into(),
        }
    }

    #[test]
    fn directions_are_put_first_left_out_and_added() {
        let mut directions = vec![named("a"), named("b"), named("c")];
        let text = |text: &str| text.to_owned();
        let refused = apply(
            &mut directions,
            &[
                PlanChange::First {
                    direction: text("c"),
                    why: text("value"),
                },
                PlanChange::Drop {
                    direction: text("a"),
                    why: text("loss"),
                },
                PlanChange::Add {
                    direction: text("packing"),
                    idea: text("Pack `b`\n## once."),
                    risk: text("memory"),
                },
                PlanChange::Drop {
                    direction: text("z"),
                    why: text("unknown"),
                },
            ],
        );
        let names: Vec<&str> = directions
            .iter()
            .map(|direction| direction.name.as_str())
            .collect();
        assert_eq!(names, ["c", "b", "packing"]);
        assert_eq!(directions[2].idea, "Pack 'b' ## once.");
        assert_eq!(refused, ["there is no direction `z` to leave out"]);
    }

    #[test]
    fn the_last_direction_stays() {
        let mut directions = vec![named("a")];
        let drop = PlanChange::Drop {
            direction: "a".into(),
            why: "loss".into(),
        };
        assert_eq!(apply(&mut directions, &[drop]), ["`a` is the only direction"]);
        assert_eq!(directions.len(), 1);
    }
}
