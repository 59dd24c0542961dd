//! Profiles: what one agent's command line needs, as data. A new agent is a new file, not new code.
//!
//! A profile names the program, its arguments, the environment and the files of a clean home; `{names}` in braces are
//! filled in for each session. What switches an agent's own approvals off stands in the profile by name, so that it can
//! be said before anything starts.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::gateway::Wire;

/// Profiles that are part of the program.
const BUILT_IN: [(&str, &str); 5] = [
    ("claude", include_str!("profiles/claude.toml")),
    ("codex", include_str!("profiles/codex.toml")),
    ("opencode", include_str!("profiles/opencode.toml")),
    ("pi", include_str!("profiles/pi.toml")),
    ("qwen", include_str!("profiles/qwen.toml")),
];

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// It is no built-in profile, no file of one and no program.
    #[error("`{0}` is no agent profile ({known}), no profile file (`.toml`) and no program", known = Profile::names().join(", "))]
    Unknown(String),
    /// The file cannot be read.
    #[error("cannot read profile `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file is no profile.
    #[error("profile `{name}` is wrong: {cause}")]
    Wrong {
        /// Its name or path.
        name: String,
        /// What is wrong.
        cause: String,
    },
}

/// How the agent is told what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptBy {
    /// In place of `{prompt}` among the arguments.
    #[default]
    Argument,
    /// On standard input.
    Stdin,
}

/// A file that the agent finds in its home or on its desk.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// Where: begins with `{home}/` or `{desk}/`.
    pub path: String,
    /// Its text, with placeholders.
    pub text: String,
}

/// What one agent's command line needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the format: 1.
    pub schema: u32,
    /// Its name in records.
    pub name: String,
    /// The program, by name on the search path or by absolute path.
    pub program: String,
    /// Its arguments, with placeholders.
    pub args: Vec<String>,
    /// Arguments that make it print its version.
    #[serde(default)]
    pub version: Vec<String>,
    /// How it is told what to do.
    #[serde(default)]
    pub prompt: PromptBy,
    /// What it speaks to its model; none if it uses no model of ours.
    #[serde(default)]
    pub wire: Option<Wire>,
    /// Its environment beyond the common one, with placeholders.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files written before it starts.
    #[serde(default)]
    pub files: Vec<ProfileFile>,
    /// Arguments by which it skips its own approvals or its own sandbox.
    #[serde(default)]
    pub skips: Vec<String>,
    /// Files and folders of the machine that it needs to see as well, read-only.
    #[serde(default)]
    pub show: Vec<PathBuf>,
    /// Arguments that give it our tools by MCP, with placeholders; they stand in place of the argument `{mcp}` where this
    /// build has the MCP server.
    #[serde(default)]
    pub mcp: Vec<String>,
    /// How to get it, for people.
    #[serde(default)]
    pub install: Option<String>,
}

/// What placeholders stand for in one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    /// `{home}`: the clean home.
    pub home: String,
    /// `{desk}`: the working folder.
    pub desk: String,
    /// `{url}`: the gateway's address inside the box, without a path.
    pub url: String,
    /// `{key}`: the dummy key that the gateway accepts.
    pub key: String,
    /// `{model}`: the model's name.
    pub model: String,
    /// `{prompt}`: what the agent is told.
    pub prompt: String,
    /// `{turns}`: how many turns it may take.
    pub turns: String,
    /// `{ksmith}`: this program inside the box; empty if it is not there.
    pub ksmith: String,
    /// `{tools}`: the socket of our tools inside the box; empty if there is none. Some agents start MCP servers without
    /// their own environment.
    pub tools: String,
}

impl Values {
    /// Fills placeholders in; texts in braces that are none are left alone. Nothing filled in is read again.
    pub fn fill(&self, text: &str) -> String {
        let known = [
            ("{home}", &self.home),
            ("{desk}", &self.desk),
            ("{url}", &self.url),
            ("{key}", &self.key),
            ("{model}", &self.model),
            ("{prompt}", &self.prompt),
            ("{turns}", &self.turns),
            ("{ksmith}", &self.ksmith),
            ("{tools}", &self.tools),
        ];
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(brace) = rest.find('{') {
            filled.push_str(&rest[..brace]);
            rest = &rest[brace..];
            match known.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, value)) => {
                    filled.push_str(value);
                    rest = &rest[name.len()..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }
}

impl Profile {
    /// Names of the built-in profiles.
    pub fn names() -> Vec<&'static str> {
        BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// Every built-in profile.
    pub fn built_in() -> Vec<Self> {
        BUILT_IN
            .iter()
            .filter_map(|(name, text)| Self::parse(name, text).ok())
            .collect()
    }

    /// A built-in profile by name, one from a `.toml` file, or one for any program of the user's.
    ///
    /// # Errors
    /// When there is no such profile or program, or the file is wrong.
    pub fn load(name: &str) -> Result<Self, ProfileError> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        let path = Path::new(name);
        if path.extension().is_some_and(|end| end == "toml") {
            let text = std::fs::read_to_string(path).map_err(|source| ProfileError::Io {
                path: path.to_owned(),
                source,
            })?;
            return Self::parse(name, &text);
        }
        match path.canonicalize() {
            Ok(program) if program.is_file() => Ok(Self::command(&program)),
            Ok(_) | Err(_) => Err(ProfileError::Unknown(name.to_owned())),
        }
    }

    /// A profile for any program: it gets the prompt as its only argument, and the gateway in the usual variables of all
    /// three wire formats.
    pub fn command(program: &Path) -> Self {
        let env = [
            ("OPENAI_BASE_URL", "{url}/v1"),
            ("OPENAI_API_KEY", "{key}"),
            ("OPENAI_MODEL", "{model}"),
            ("ANTHROPIC_BASE_URL", "{url}"),
            ("ANTHROPIC_API_KEY", "{key}"),
            ("ANTHROPIC_MODEL", "{model}"),
        ];
        Self {
            schema: 1,
            name: program.file_name().map_or_else(
                || "command".to_owned(),
                |name| name.to_string_lossy().into_owned(),
            ),
            program: program.display().to_string(),
            args: vec!["{prompt}".to_owned()],
            version: Vec::new(),
            prompt: PromptBy::Argument,
            wire: None,
            env: env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            files: Vec::new(),
            skips: Vec::new(),
            show: Vec::new(),
            mcp: Vec::new(),
            install: None,
        }
    }

    /// Reads a profile's text.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        let wrong = |cause: String| ProfileError::Wrong {
            name: name.to_owned(),
            cause,
        };
        let profile: Self = toml::from_str(text).map_err(|error| wrong(error.message().to_owned()))?;
        if profile.schema != 1 {
            return Err(wrong(format!(
                "schema {} is not known; expected 1",
                profile.schema
            )));
        }
        for file in &profile.files {
            let inner = file
                .path
                .strip_prefix("{home}/")
                .or_else(|| file.path.strip_prefix("{desk}/"));
            let plain = inner.is_some_and(|inner| {
                Path::new(inner)
                    .components()
                    .all(|part| matches!(part, Component::Normal(_)))
            });
            if !plain {
                return Err(wrong(format!(
                    "file `{}` lies neither below `{{home}}/` nor below `{{desk}}/`",
                    file.path
                )));
            }
        }
        if profile.prompt == PromptBy::Argument && !profile.args.iter().any(|arg| arg.contains("{prompt}")) {
            return Err(wrong("no argument holds `{prompt}`".into()));
        }
        for skip in &profile.skips {
            let args = profile.args.iter();
            let mut texts = args.chain(profile.files.iter().map(|file| &file.text));
            if !texts.any(|text| text.contains(skip.as_str())) {
                return Err(wrong(format!(
                    "`skips` names `{skip}`, which no argument or file holds"
                )));
            }
        }
        if !profile.mcp.is_empty() && !profile.args.iter().any(|arg| arg == "{mcp}") {
            return Err(wrong("`mcp` has arguments, and no argument is `{mcp}`".into()));
        }
        if let Some(relative) = profile.show.iter().find(|path| !path.is_absolute()) {
            return Err(wrong(format!(
                "`show` needs absolute paths: `{}`",
                relative.display()
            )));
        }
        Ok(profile)
    }

    /// The arguments of one session.
    pub fn arguments(&self, values: &Values, mcp: bool) -> Vec<String> {
        let mut arguments = Vec::new();
        for arg in &self.args {
            if arg == "{mcp}" {
                let with = self.mcp.iter().filter(|_| mcp && !values.ksmith.is_empty());
                arguments.extend(with.map(|arg| values.fill(arg)));
            } else {
                arguments.push(values.fill(arg));
            }
        }
        arguments
    }

    /// What a person should know before it starts, one sentence each.
    pub fn remarks(&self, level: &str) -> Vec<String> {
        if self.skips.is_empty() {
            return Vec::new();
        }
        vec![format!(
            "agent `{}` runs with `{}`: its own approvals and sandbox are off, and what holds it is the box (level \
             `{level}`)",
            self.name,
            self.skips.join(" ")
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_one_and_names_its_wire_format() {
        let profiles = Profile::built_in();
        assert_eq!(profiles.len(), BUILT_IN.len());
        for (profile, name) in profiles.iter().zip(Profile::names()) {
            assert_eq!(profile.name, name);
            assert!(profile.wire.is_some() && profile.install.is_some(), "{name}");
            let all = format!("{:?} {:?} {:?}", profile.args, profile.env, profile.files);
            for needed in ["{url}", "{key}", "{model}", "{prompt}"] {
                assert!(all.contains(needed), "{name} lacks {needed}");
            }
        }
    }

    #[test]
    fn placeholders_are_filled_in_once() {
        let values = Values {
            prompt: "say {key}".into(),
            key: "dummy".into(),
            ..Values::default()
        };
        assert_eq!(
            values.fill("{prompt} {key} {other} {\"a\":{key}}"),
            "say {key} dummy {other} {\"a\":dummy}"
        );
    }

    #[test]
    fn a_profile_that_writes_elsewhere_or_hides_its_skips_is_refused() {
        let base = "schema = 1\nname = \"x\"\nprogram = \"x\"\nargs = [\"{prompt}\"]\n";
        assert!(Profile::parse("x", base).is_ok());
        for (wrong, part) in [
            (
                "[[files]]\npath = \"/etc/passwd\"\ntext = \"\"\n",
                "neither below",
            ),
            (
                "[[files]]\npath = \"{home}/../x\"\ntext = \"\"\n",
                "neither below",
            ),
            ("skips = [\"--yolo\"]\n", "no argument or file holds"),
            ("show = [\"relative\"]\n", "absolute"),
            ("network = true\n", "unknown field"),
        ] {
            let error = Profile::parse("x", &format!("{base}{wrong}")).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        let silent = base.replace("{prompt}", "x");
        assert!(Profile::parse("x", &silent).is_err());
        assert!(Profile::parse("x", &format!("{silent}prompt = \"stdin\"\n")).is_ok());
    }

    #[test]
    fn any_program_is_a_profile_and_nothing_else_is() {
        let profile = Profile::load("/bin/sh").unwrap();
        assert!(Path::new(&profile.program).is_absolute());
        let error = Profile::load("no-such-agent").unwrap_err().to_string();
        assert!(error.contains("claude, codex, opencode, pi, qwen"), "{error}");
    }
}
