//! Finding entries: scope first, then BM25 over their words, then how near the scope is and how well it is shown.
//!
//! Backend and dtype are hard borders: an entry for another backend is never served, however well its words fit.
//! Family and operator only weigh, since an idea often holds for a neighbour. An answer says what was left out.

use bm25::{Document, SearchEngineBuilder, Tokenizer};
use serde::Serialize;

use crate::{Effect, Entry, EvidenceState, Kind, Lore, Scope};

/// BM25's usual constants (Robertson and Zaragoza, *The Probabilistic Relevance Framework*, 2009).
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// Hits without a limit.
const LIMIT: usize = 5;
/// Bytes of an answer's texts without a limit.
const BYTES: usize = 6 << 10;

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// Words: an operator, a symptom, an idea, an instruction's name.
    pub text: String,
    /// What it is asked for; empty fields ask for anything.
    pub scope: Scope,
    /// Most hits; 0 means five.
    pub limit: usize,
    /// Most bytes of texts; 0 means 6 KiB.
    pub bytes: usize,
}

/// What kind of answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerKind {
    /// There are hits.
    Matches,
    /// Nothing fits the words.
    Empty,
    /// Something fits the words, and nothing of it the scope.
    OutOfScope,
}

/// One entry that fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// Its id.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// One line.
    pub title: String,
    /// The problem.
    pub problem: String,
    /// What to do.
    pub action: String,
    /// Why.
    pub mechanism: String,
    /// For a dead end: what would change it.
    pub would_retry_if: String,
    /// Measured effect with its bounds.
    pub effect: Option<Effect>,
    /// State of each piece of evidence.
    pub evidence: Vec<EvidenceState>,
    /// Independent runs that show it.
    pub runs: usize,
    /// Whether scope and operator are the very ones that were asked for.
    pub is_exact: bool,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// What kind.
    pub kind: AnswerKind,
    /// The hits, best first; at least one dead end where one fits.
    pub hits: Vec<Hit>,
    /// Entries that fit the words and another backend or dtype.
    pub out_of_scope: usize,
    /// Entries that fit and were struck or retired.
    pub not_served: usize,
    /// Entries that fit and found no room.
    pub left_out: usize,
}

/// Words of text and code: whole, and split at underscores, dots, dashes and changes of case.
#[derive(Debug, Clone, Copy, Default)]
struct Words;

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for piece in text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))) {
            let piece = piece.trim_matches(['.', '-', '_']);
            if piece.is_empty() {
                continue;
            }
            words.push(stem(&piece.to_lowercase()));
            let parts: Vec<&str> = piece
                .split(['_', '.', '-'])
                .filter(|part| !part.is_empty())
                .collect();
            if parts.len() > 1 {
                words.extend(parts.iter().map(|part| stem(&part.to_lowercase())));
            }
        }
        words.retain(|word| !STOP.contains(&word.as_str()));
        words
    }
}

/// Words that say nothing in a query.
const STOP: [&str; 22] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "how", "in", "is", "it", "of", "on", "or", "the",
    "to", "what", "when", "with", "why",
];

/// Takes a plural's end away, so that `row` finds `rows`; names of code stay as they are.
fn stem(word: &str) -> String {
    let is_plural = word.len() > 3
        && word.bytes().all(|byte| byte.is_ascii_lowercase())
        && word.ends_with('s')
        && !word.ends_with("ss")
        && !word.ends_with("us");
    if is_plural {
        word[..word.len() - 1].to_owned()
    } else {
        word.to_owned()
    }
}

/// Finds what fits.
pub fn recall(lore: &Lore, query: &Query) -> Answer {
    let entries = lore.entries();
    let mut answer = Answer {
        kind: AnswerKind::Empty,
        hits: Vec::new(),
        out_of_scope: 0,
        not_served: 0,
        left_out: 0,
    };
    // Ids of the engine are places in the list.
    let documents: Vec<Document<usize>> = entries
        .iter()
        .enumerate()
        .map(|(id, entry)| Document::new(id, words(entry)))
        .collect();
    if documents.is_empty() {
        return answer;
    }
    let engine = SearchEngineBuilder::<usize, u32, Words>::with_tokenizer_and_documents(Words, documents)
        .k1(K1)
        .b(B)
        .build();
    let mut found: Vec<(f64, &Entry)> = Vec::new();
    for result in engine.search(&query.text, None::<usize>) {
        let Some(entry) = entries.get(result.document.id) else {
            continue;
        };
        if !fits(entry, &query.scope) {
            answer.out_of_scope += 1;
        } else if !lore.is_served(entry) {
            answer.not_served += 1;
        } else {
            found.push((
                f64::from(result.score) * nearness(entry, &query.scope) * confidence(lore, entry),
                entry,
            ));
        }
    }
    // Equal scores in the order of ids, so that one question has one answer.
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.id.cmp(&b.1.id)));
    let limit = if query.limit == 0 { LIMIT } else { query.limit };
    let mut room = if query.bytes == 0 { BYTES } else { query.bytes };
    let mut chosen: Vec<&Entry> = Vec::new();
    for (_, entry) in &found {
        let size = size(entry);
        if chosen.len() < limit && size <= room {
            room -= size;
            chosen.push(entry);
        }
    }
    // A dead end that fits is worth more than one more idea.
    let dead_end = found
        .iter()
        .map(|(_, entry)| *entry)
        .find(|entry| entry.kind == Kind::DeadEnd);
    if let Some(dead_end) = dead_end
        && !chosen.iter().any(|entry| entry.kind == Kind::DeadEnd)
        && let Some(last) = chosen.last_mut()
    {
        *last = dead_end;
    }
    answer.left_out = found.len() - chosen.len();
    answer.kind = match (chosen.is_empty(), answer.out_of_scope) {
        (false, _) => AnswerKind::Matches,
        (true, 0) => AnswerKind::Empty,
        (true, _) => AnswerKind::OutOfScope,
    };
    answer.hits = chosen
        .into_iter()
        .map(|entry| hit(lore, entry, &query.scope))
        .collect();
    answer
}

/// An entry's words; the title counts three times, problem and action twice.
fn words(entry: &Entry) -> String {
    let title = format!("{} ", entry.title).repeat(3);
    let middle = format!("{} {} {} ", entry.problem, entry.action, entry.tags.join(" ")).repeat(2);
    let scope = [&entry.scope.families, &entry.scope.operators, &entry.scope.dtypes]
        .map(|list| list.join(" "))
        .join(" ");
    format!(
        "{title}{middle}{} {} {scope}",
        entry.mechanism, entry.would_retry_if
    )
}

/// Whether nothing that is asked for is excluded.
fn fits(entry: &Entry, scope: &Scope) -> bool {
    let meets = |of_entry: &[String], asked: &[String]| {
        of_entry.is_empty() || asked.is_empty() || asked.iter().any(|wanted| of_entry.contains(wanted))
    };
    meets(&entry.scope.backends, &scope.backends) && meets(&entry.scope.dtypes, &scope.dtypes)
}

fn shares(of_entry: &[String], asked: &[String]) -> bool {
    asked.iter().any(|wanted| of_entry.contains(wanted))
}

/// The same operator 1, the same family 0.85, none named 0.8, another 0.6.
fn nearness(entry: &Entry, scope: &Scope) -> f64 {
    if scope.operators.is_empty() && scope.families.is_empty()
        || shares(&entry.scope.operators, &scope.operators)
    {
        1.0
    } else if shares(&entry.scope.families, &scope.families) {
        0.85
    } else if entry.scope.families.is_empty() && entry.scope.operators.is_empty() {
        0.8
    } else {
        0.6
    }
}

/// Shown here 1, shown by a run elsewhere 0.85, read somewhere 0.7; a mere observation 0.8 of that.
fn confidence(lore: &Lore, entry: &Entry) -> f64 {
    let states = lore.evidence(entry);
    let shown = if states.contains(&EvidenceState::Shown) {
        1.0
    } else if states.contains(&EvidenceState::Elsewhere) {
        0.85
    } else {
        0.7
    };
    match entry.kind {
        Kind::Technique | Kind::DeadEnd => shown,
        Kind::Observation => 0.8 * shown,
    }
}

fn size(entry: &Entry) -> usize {
    [
        &entry.title,
        &entry.problem,
        &entry.action,
        &entry.mechanism,
        &entry.would_retry_if,
    ]
    .iter()
    .map(|text| text.len())
    .sum()
}

fn hit(lore: &Lore, entry: &Entry, scope: &Scope) -> Hit {
    Hit {
        id: entry.id.clone(),
        kind: entry.kind,
        title: entry.title.clone(),
        problem: entry.problem.clone(),
        action: entry.action.clone(),
        mechanism: entry.mechanism.clone(),
        would_retry_if: entry.would_retry_if.clone(),
        effect: entry.effect,
        evidence: lore.evidence(entry),
        runs: entry.runs(),
        is_exact: shares(&entry.scope.operators, &scope.operators),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Status;
    use crate::entry::tests::entry;

    fn library(entries: &[Entry]) -> (tempfile::TempDir, Lore) {
        let home = tempfile::tempdir().unwrap();
        let mut lore = Lore::open(home.path()).unwrap();
        for entry in entries {
            lore.add(entry.clone()).unwrap();
        }
        let lore = Lore::open(home.path()).unwrap();
        (home, lore)
    }

    fn about(id: &str, title: &str, kind: Kind, scope: Scope) -> Entry {
        Entry {
            title: title.into(),
            problem: title.into(),
            action: title.into(),
            scope,
            tags: Vec::new(),
            mechanism: "a mechanism of more than twenty letters".into(),
            would_retry_if: "never".into(),
            ..entry(id, kind)
        }
    }

    fn on(backend: &str, family: &str) -> Scope {
        Scope {
            backends: vec![backend.into()],
            families: vec![family.into()],
            ..Scope::default()
        }
    }

    fn ids(answer: &Answer) -> Vec<&str> {
        answer.hits.iter().map(|hit| hit.id.as_str()).collect()
    }

    #[test]
    fn code_words_are_found_whole_and_in_parts() {
        let words = Words.tokenize("Use _mm512_dpbf16_ps on rows; cp.async.bulk is 2x.");
        for word in ["mm512_dpbf16_ps", "dpbf16", "row", "cp.async.bulk", "async", "2x"] {
            assert!(words.contains(&word.to_owned()), "{word}: {words:?}");
        }
        assert!(!words.contains(&"on".to_owned()));
    }

    #[test]
    fn another_backend_is_never_served_however_well_the_words_fit() {
        let entries = [
            about(
                "gpu",
                "shared memory bank conflicts in softmax rows",
                Kind::Technique,
                on("cuda", "row-reduction"),
            ),
            about(
                "cpu",
                "softmax rows in the first-level cache",
                Kind::Technique,
                on("cpu", "row-reduction"),
            ),
        ];
        let (_home, lore) = library(&entries);
        let query = |backend: &str| Query {
            text: "bank conflicts in softmax rows".into(),
            scope: on(backend, "row-reduction"),
            ..Query::default()
        };
        let answer = recall(&lore, &query("cpu"));
        assert_eq!((ids(&answer), answer.out_of_scope), (vec!["cpu"], 1));
        let none = recall(
            &lore,
            &Query {
                text: "bank conflicts".into(),
                ..query("cpu")
            },
        );
        assert_eq!((none.kind, none.out_of_scope), (AnswerKind::OutOfScope, 1));
        let empty = recall(
            &lore,
            &Query {
                text: "zebra".into(),
                ..query("cpu")
            },
        );
        assert_eq!(empty.kind, AnswerKind::Empty);
    }

    #[test]
    fn the_nearer_scope_wins_and_a_dead_end_always_has_its_place() {
        let mut entries: Vec<Entry> = (0..6)
            .map(|i| {
                about(
                    &format!("idea-{i}"),
                    "unroll the reduction loop",
                    Kind::Technique,
                    on("cpu", "gemm"),
                )
            })
            .collect();
        entries.push(about(
            "near",
            "unroll the reduction loop",
            Kind::Technique,
            on("cpu", "reduction"),
        ));
        entries.push(about(
            "dead",
            "unroll the loop by hand, a longer text about something else",
            Kind::DeadEnd,
            on("cpu", "gemm"),
        ));
        let (_home, lore) = library(&entries);
        let answer = recall(
            &lore,
            &Query {
                text: "unroll reduction loop".into(),
                scope: on("cpu", "reduction"),
                limit: 3,
                ..Query::default()
            },
        );
        assert_eq!(ids(&answer)[0], "near");
        assert!(ids(&answer).contains(&"dead"), "{:?}", ids(&answer));
        assert_eq!((answer.hits.len(), answer.left_out), (3, 5));
    }

    #[test]
    fn a_retired_entry_is_counted_and_not_served() {
        let mut retired = about("old", "unroll by eight", Kind::Technique, Scope::default());
        retired.status = Status::Retired;
        let (_home, lore) = library(&[retired]);
        let answer = recall(
            &lore,
            &Query {
                text: "unroll".into(),
                ..Query::default()
            },
        );
        assert_eq!((answer.hits.len(), answer.not_served), (0, 1));
    }

    proptest! {
        #[test]
        fn no_question_leaks_another_scope_or_exceeds_its_room(text in ".{0,60}", limit in 0usize..4, bytes in 1usize..400) {
            let entries = [
                about("gpu", "softmax rows", Kind::DeadEnd, on("cuda", "row-reduction")),
                about("cpu", "softmax rows", Kind::Technique, on("cpu", "row-reduction")),
            ];
            let (_home, lore) = library(&entries);
            let answer = recall(&lore, &Query { text, scope: on("cpu", "gemm"), limit, bytes });
            prop_assert!(answer.hits.iter().all(|hit| hit.id == "cpu"));
            prop_assert!(limit == 0 || answer.hits.len() <= limit);
        }
    }
}
