//! A profile in at most 2 KiB, for a writer: six lines, and exactly one next edit with the metric that should move.

use serde::{Deserialize, Serialize};

use crate::ncu::KernelProfile;
use crate::reading::{Direction, ProfileReading};

/// Most bytes of a digest.
const BYTE_CAP: usize = 2048;

/// The one next edit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NextEdit {
    /// What to change.
    pub change: String,
    /// The metric that should move.
    pub metric: String,
    /// Where it should go.
    pub direction: Direction,
    /// Its value now, if the report has it.
    pub now: Option<f64>,
}

/// A digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileDigest {
    /// The text, at most 2 KiB; its last line is the next edit.
    pub text: String,
    /// The next edit.
    pub next: NextEdit,
    /// The rule that chose it, if one held.
    pub rule: Option<String>,
    /// Names that the search understands.
    pub strategies: Vec<String>,
}

/// Writes the digest of a reading.
pub fn digest(profile: &KernelProfile, reading: &ProfileReading) -> ProfileDigest {
    let next = next_edit(profile, reading);
    let arrow = match next.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let now = next.now.map_or_else(
        || "not in this report".to_owned(),
        |value| format!("now {}", short(value)),
    );
    let last = format!(
        "Next edit: {}. Should move: {} {arrow} ({now}).",
        next.change, next.metric
    );
    let mut lines = vec![format!(
        "Profile of {} on CC {}, grid {}, block {}.",
        cut(&profile.name, 120),
        cut(&profile.capability, 8),
        cut(&profile.grid, 40),
        cut(&profile.block, 40)
    )];
    if let Some(main) = &reading.main {
        lines.push(format!("Main: {} ({}).", main.says, main.id));
    }
    for entry in &reading.dimensions {
        let mut line = format!("{}: ", entry.dimension.name());
        if entry.says.is_empty() {
            line.push_str(&format!("unavailable: {}", names(&entry.unavailable)));
        } else {
            line.push_str(&entry.says.join("; "));
            if !entry.unavailable.is_empty() {
                line.push_str(&format!("; unavailable: {}", names(&entry.unavailable)));
            }
        }
        lines.push(cut(&line, 330));
    }
    let stalls = profile.metrics.top_stalls(3);
    if !stalls.is_empty() {
        let list: Vec<String> = stalls
            .iter()
            .map(|(reason, share)| format!("{reason} {share:.0} %"))
            .collect();
        lines.push(format!(
            "top stalls: {}. Hot lines are not in a raw page.",
            list.join(", ")
        ));
    }
    let mut text = lines.join("\n");
    let room = BYTE_CAP.saturating_sub(last.len() + 1);
    if text.len() > room {
        text = cut(&text, room.saturating_sub(4));
    }
    ProfileDigest {
        text: format!("{text}\n{last}"),
        next,
        rule: reading.main.as_ref().map(|main| main.id.clone()),
        strategies: reading
            .main
            .as_ref()
            .map(|main| main.strategies.clone())
            .unwrap_or_default(),
    }
}

fn next_edit(profile: &KernelProfile, reading: &ProfileReading) -> NextEdit {
    match reading.main.as_ref().and_then(|main| main.edit.as_ref()) {
        Some(edit) => NextEdit {
            change: edit.change.clone(),
            metric: edit.metric.clone(),
            direction: edit.direction,
            now: profile.metrics.get(&edit.metric),
        },
        None => NextEdit {
            change: "none yet: profile again with `ncu --set full --csv --page raw`, since no rule had its metrics"
                .to_owned(),
            metric: "dram_percent".to_owned(),
            direction: Direction::Up,
            now: profile.metrics.get("dram_percent"),
        },
    }
}

fn names(list: &[String]) -> String {
    match list.len() {
        0 => "nothing to read".to_owned(),
        1..=4 => list.join(", "),
        more => format!("{}, and {} more", list[..4].join(", "), more - 4),
    }
}

/// At most `bytes` bytes, cut at a character, with an ellipsis where something was cut.
fn cut(text: &str, bytes: usize) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect();
    if text.len() <= bytes {
        return text;
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

fn short(value: f64) -> String {
    if value.abs() >= 1000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}
