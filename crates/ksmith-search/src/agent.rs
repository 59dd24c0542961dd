//! The offline agent: a brief in, candidate folders out.
//!
//! Directions are tried one after another: first the structures written for the operator, by predicted gain, then
//! rewrites of the baseline's source, then structures of the same family that merely have the same signature. Each
//! call of [`SearchAgent::propose`] stays within one direction and is a pure function of seed and brief.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ksmith_task::contract::Backend;
use ksmith_task::expr::Env;
use ksmith_task::{Brief, Candidate, DType, Digest, Instance, Proposal, Task};

use crate::folder::{write_cuda, write_manifest};
use crate::history::{History, with_label};
use crate::manifest::WORKERS;
use crate::prior::{Setting, predict};
use crate::render::{Rendered, render};
use crate::rewrite::{self, Rewrite};
use crate::signature::bind;
use crate::strategy::{Ranked, Settings, next_with_seeds};
use crate::transfer::Target;
use crate::{Binding, Cache, Config, Facts, Library, SearchError, Space, Structure, mean_axes};

/// A direction is left after so many rounds without a gain.
const TRIES_PER_DIRECTION: usize = 5;
/// Flags of every structure.
const FLAGS: [&str; 2] = ["-O3", "-march=native"];

/// A direction worth trying.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction {
    /// Its name, as proposals cite it.
    pub name: String,
    /// What is expected and why, in one sentence.
    pub idea: String,
    /// Predicted gain over the baseline, as a ratio of times.
    pub value: f64,
    /// What could go wrong, in one sentence.
    pub risk: String,
}

/// The offline agent.
#[derive(Debug)]
pub struct SearchAgent {
    library: Library,
    facts: Facts,
    cache: Cache,
    prepared: Option<Prepared>,
}

/// What follows from a task's instance alone.
#[derive(Debug)]
struct Prepared {
    task: PathBuf,
    instance: String,
    backend: Backend,
    directions: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    about: Direction,
    /// Whether it was written for this operator.
    meant: bool,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Structure(Box<Fitted>),
    Rewrites(Vec<Rewrite>),
}

/// A structure bound to an instance, with its ranked space.
#[derive(Debug)]
struct Fitted {
    structure: Structure,
    binding: Binding,
    space: Space,
    priors: Vec<f64>,
}

impl SearchAgent {
    /// An agent with the built-in structures.
    pub fn new(facts: Facts) -> Result<Self, SearchError> {
        Ok(Self::with_library(Library::built_in()?, facts))
    }

    /// An agent with a library of its own.
    pub fn with_library(library: Library, facts: Facts) -> Self {
        Self {
            library,
            facts,
            cache: Cache::default(),
            prepared: None,
        }
    }

    /// Lets earlier measurements of the same family on the same machine seed the search.
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = cache;
        self
    }

    /// Directions for the draft, best first.
    pub fn directions(&mut self, brief: &Brief) -> Result<Vec<Direction>, SearchError> {
        Ok(self
            .prepare(brief)?
            .directions
            .iter()
            .map(|line| line.about.clone())
            .collect())
    }

    /// Writes up to `wanted` candidates of one direction into folders below `brief.out`; none if nothing is left.
    pub fn propose(&mut self, brief: &Brief, wanted: usize) -> Result<Vec<Proposal>, SearchError> {
        if wanted == 0 {
            return Ok(Vec::new());
        }
        self.prepare(brief)?;
        let Some(prepared) = &self.prepared else {
            return Ok(Vec::new());
        };
        let history = History::of(&brief.history);
        let closed = closed_by_notes(&brief.notes);
        let named = brief.direction.as_deref();
        let mut lines: Vec<&Line> = prepared.directions.iter().collect();
        lines.sort_by_key(|line| named != Some(line.about.name.as_str()));
        for line in lines {
            let name = &line.about.name;
            if closed.contains(name) || history.fruitless(name) >= TRIES_PER_DIRECTION * wanted {
                continue;
            }
            let proposals = match &line.kind {
                Kind::Structure(fitted) => self.configurations(brief, &history, line, fitted, wanted)?,
                Kind::Rewrites(rewrites) => rewritten(brief, &history, name, rewrites, wanted)?,
            };
            if !proposals.is_empty() {
                return Ok(proposals);
            }
        }
        Ok(Vec::new())
    }

    fn configurations(
        &self,
        brief: &Brief,
        history: &History,
        line: &Line,
        fitted: &Fitted,
        wanted: usize,
    ) -> Result<Vec<Proposal>, SearchError> {
        let name = line.about.name.as_str();
        let mut tried: BTreeMap<Config, Option<f64>> = BTreeMap::new();
        for earlier in history.of_direction(name) {
            if let Some(config) = earlier.config() {
                let slot = tried.entry(config).or_insert(None);
                *slot = match (*slot, earlier.time) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
        }
        let anything_worked = tried.values().any(Option::is_some);
        if !line.meant && !tried.is_empty() && !anything_worked {
            // The signature fits but the operator is another one.
            return Ok(Vec::new());
        }
        let wanted = if line.meant || anything_worked { wanted } else { 1 };
        let ranked = Ranked {
            space: &fitted.space,
            priors: fitted.priors.clone(),
        };
        let configs = next_with_seeds(
            &ranked,
            &tried,
            &self.transferred(brief, fitted),
            wanted,
            mix(brief.seed, name),
            Settings::default(),
        );

        let parent = history
            .of_direction(name)
            .filter(|earlier| earlier.time.is_some())
            .min_by(|a, b| a.time.unwrap_or(f64::MAX).total_cmp(&b.time.unwrap_or(f64::MAX)));
        let mut seen = BTreeSet::new();
        let mut proposals = Vec::new();
        for config in configs {
            let Rendered { source, plan } = render(
                &self.library,
                &fitted.structure,
                &fitted.binding,
                &config,
                &self.facts,
            )?;
            let body = source.split_once('\n').map_or(source.as_str(), |(_, body)| body);
            let whole = format!("{body}{}", plan.as_deref().unwrap_or_default());
            if !seen.insert(Digest::of(whole.as_bytes())) {
                continue;
            }
            let folder = brief.out.join(format!("{:02}", proposals.len()));
            let own = &fitted.structure.manifest.flags;
            if let Some(plan) = plan {
                write_cuda(&folder, &source, own, &plan)?;
            } else {
                let flags: Vec<String> = FLAGS
                    .iter()
                    .map(|flag| (*flag).to_owned())
                    .chain(own.iter().cloned())
                    .chain((config.get(WORKERS) > Some(1)).then(|| "-fopenmp".to_owned()))
                    .collect();
                let sources = ["kernel.c".to_owned()];
                write_manifest(&folder, &sources, &fitted.binding.entry, &flags, &[])?;
                let path = folder.join("kernel.c");
                fs::write(&path, source).map_err(SearchError::io("write", &path))?;
            }
            let prior = fitted
                .space
                .configs
                .iter()
                .position(|known| *known == config)
                .map(|at| fitted.priors[at]);
            proposals.push(Proposal {
                folder,
                hypothesis: with_label(&fitted.structure.manifest.idea, &config.to_string()),
                predicted_gain: prior.map(|prior| history.champion / prior),
                direction: name.to_owned(),
                parent: parent.map(|parent| parent.candidate.clone()),
            });
        }
        Ok(proposals)
    }

    /// What was best on the nearest tasks of earlier runs.
    fn transferred(&self, brief: &Brief, fitted: &Fitted) -> Vec<Config> {
        Target {
            family: &brief.family,
            structure: &fitted.structure.manifest.name,
            instance: &brief.instance,
            axes: &mean_axes(brief.workloads.iter().map(|workload| &workload.axes)),
            space: &fitted.space,
            priors: &fitted.priors,
        }
        .seeds(self.cache.entries())
    }

    fn prepare(&mut self, brief: &Brief) -> Result<&Prepared, SearchError> {
        let fresh = self.prepared.take().filter(|known| {
            known.task == brief.task && known.instance == brief.instance && known.backend == brief.backend
        });
        let prepared = match fresh {
            Some(known) => known,
            None => self.prepared_for(brief)?,
        };
        Ok(self.prepared.insert(prepared))
    }

    fn prepared_for(&self, brief: &Brief) -> Result<Prepared, SearchError> {
        let task = Task::load(&brief.task)?;
        let instance = task
            .instances()
            .into_iter()
            .find(|instance| instance.id() == brief.instance)
            .ok_or_else(|| SearchError::Instance(brief.instance.clone()))?;
        // Source rewrites are of C.
        let baseline = match brief.backend {
            Backend::Cpu => baseline_of(&task)?,
            Backend::Cuda => None,
        };
        let entry = baseline
            .as_ref()
            .and_then(Candidate::cpu)
            .map_or(task.contract().name.clone(), |program| program.entry.clone());
        let mut directions: Vec<Line> = self
            .library
            .structures()
            .iter()
            .filter_map(|structure| self.fit(brief, &instance, structure, &entry))
            .collect();
        if let Some(baseline) = &baseline {
            directions.extend(rewrite::directions(baseline, task.contract()).into_iter().map(
                |(about, rewrites)| Line {
                    about,
                    meant: true,
                    kind: Kind::Rewrites(rewrites),
                },
            ));
        }
        // Stable, so that ties keep the library's order.
        directions.sort_by(|a, b| {
            b.meant
                .cmp(&a.meant)
                .then(b.about.value.total_cmp(&a.about.value))
        });
        Ok(Prepared {
            task: brief.task.clone(),
            instance: brief.instance.clone(),
            backend: brief.backend,
            directions,
        })
    }

    fn fit(&self, brief: &Brief, instance: &Instance, structure: &Structure, entry: &str) -> Option<Line> {
        let manifest = &structure.manifest;
        let contract = instance.task().contract();
        if manifest.backend != brief.backend {
            return None;
        }
        let meant = manifest.operators.contains(&contract.name);
        if !meant && manifest.family != contract.family {
            return None;
        }
        let binding = bind(manifest, instance, entry)?;
        let settings: Vec<Setting> = brief
            .workloads
            .iter()
            .map(|workload| {
                let mut env = constants();
                self.facts.enter(&mut env);
                binding.enter(&workload.axes, &mut env);
                Setting {
                    env,
                    weight: workload.weight,
                }
            })
            .collect();
        let fits = settings.iter().all(|setting| {
            manifest
                .when
                .iter()
                .all(|condition| condition.eval_bool(&setting.env) == Ok(true))
        });
        let largest = settings.last()?;
        if !fits {
            return None;
        }
        let mut space = Space::of(manifest, &largest.env, self.facts.threads);
        let mut priors = Vec::with_capacity(space.configs.len());
        space
            .configs
            .retain(|config| match predict(manifest, &settings, config) {
                Some(prior) => {
                    priors.push(prior);
                    true
                }
                None => false,
            });
        let best = priors.iter().copied().min_by(f64::total_cmp)?;
        Some(Line {
            about: Direction {
                name: manifest.name.clone(),
                idea: manifest.idea.clone(),
                value: 1.0 / best,
                risk: manifest.risk.clone(),
            },
            meant,
            kind: Kind::Structure(Box::new(Fitted {
                structure: structure.clone(),
                binding,
                space,
                priors,
            })),
        })
    }
}

fn rewritten(
    brief: &Brief,
    history: &History,
    direction: &str,
    rewrites: &[Rewrite],
    wanted: usize,
) -> Result<Vec<Proposal>, SearchError> {
    let mut proposals = Vec::new();
    for rewrite in rewrites
        .iter()
        .filter(|rewrite| !history.has(direction, &rewrite.label))
        .take(wanted)
    {
        let folder = brief.out.join(format!("{:02}", proposals.len()));
        rewrite.write(&folder)?;
        proposals.push(Proposal {
            folder,
            hypothesis: with_label(&rewrite.idea, &rewrite.label),
            predicted_gain: Some(rewrite.predicted * history.champion),
            direction: direction.to_owned(),
            parent: None,
        });
    }
    Ok(proposals)
}

fn baseline_of(task: &Task) -> Result<Option<Candidate>, SearchError> {
    let Some(folder) = task.contract().baseline.get(&Backend::Cpu) else {
        return Ok(None);
    };
    let folder: &Path = folder;
    Candidate::load(task.dir().join(folder))
        .map(Some)
        .map_err(|error| SearchError::Baseline(Box::new(error)))
}

/// Names of dtypes as constants, so that conditions can compare with them.
fn constants() -> Env {
    let mut env = Env::new();
    for dtype in DType::ALL {
        env.set(dtype.name(), dtype);
    }
    env
}

/// The directions that the loop has closed, from its notes.
fn closed_by_notes(notes: &[String]) -> BTreeSet<String> {
    notes
        .iter()
        .filter_map(|note| {
            let (name, rest) = note.strip_prefix("direction `")?.split_once('`')?;
            rest.starts_with(" is closed").then(|| name.to_owned())
        })
        .collect()
}

/// A seed of its own for each direction.
fn mix(seed: u64, name: &str) -> u64 {
    let digest = Digest::of(name.as_bytes()).to_string();
    let tail = digest.get(digest.len().saturating_sub(16)..).unwrap_or_default();
    seed ^ u64::from_str_radix(tail, 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_the_loop_close_directions() {
        let notes = [
            "direction `rows` is closed: it had its tries without a gain".to_owned(),
            "be bold".to_owned(),
        ];
        assert_eq!(closed_by_notes(&notes), BTreeSet::from(["rows".to_owned()]));
    }

    #[test]
    fn directions_have_different_seeds() {
        assert_ne!(mix(1, "a"), mix(1, "b"));
        assert_ne!(mix(1, "a"), mix(2, "a"));
    }
}
