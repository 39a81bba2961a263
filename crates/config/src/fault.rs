//! What is wrong with a configuration, where, and what would be accepted.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::path::{FieldPath, shown};
use crate::tree::Position;

/// Why there is no configuration.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("{}: the file cannot be read", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The configuration says something we cannot do.
    #[error("{0}")]
    Refused(Faults),
    /// There is no file, and none of the well-known variables is set.
    #[error(
        "no provider is configured: set one of {}, or name a file with providers in it",
        accepted.join(", ")
    )]
    NothingSet {
        /// The variables that would do.
        accepted: Vec<&'static str>,
    },
}

impl From<Faults> for Error {
    fn from(faults: Faults) -> Self {
        Self::Refused(faults)
    }
}

/// Every fault that was found, in the order of the file. Prints as one line each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn push(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// Puts them in the order of the file.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|fault| fault.position);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        let mut faults = Self(faults.into_iter().collect());
        faults.sort();
        faults
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, fault) in self.iter().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// One thing that is wrong. Prints as `file:line:column: path: what; what would be accepted`.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub(crate) file: String,
    pub(crate) position: Option<Position>,
    pub(crate) path: FieldPath,
    pub(crate) problem: Problem,
}

impl Fault {
    /// Where in the file; `None` when there is no file.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// The field, such as `providers.openai.keys[1].value`; empty for a fault of the spelling.
    #[must_use]
    pub fn path(&self) -> String {
        self.path.to_string()
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(Position { line, column }) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        if !self.path.steps().is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// What is wrong. Values of the file are never part of it, since they may be keys; names are.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text is not of its spelling.
    #[error("not {spelling}: {message}")]
    Syntax {
        /// JSON or TOML.
        spelling: &'static str,
        /// The parser's words.
        message: String,
    },
    /// Tables and lists lie too deep in one another.
    #[error("nested more than {deepest} deep")]
    TooDeep {
        /// The deepest that is read.
        deepest: usize,
    },
    /// A name stands twice in a table.
    #[error("{} is there twice", shown(.name))]
    Twice {
        /// The name.
        name: String,
    },
    /// A name the schema does not have.
    #[error("no such field{}", accepts(.nearest.as_deref(), .accepted))]
    UnknownField {
        /// What was most likely meant.
        nearest: Option<String>,
        /// The names that may stand here.
        accepted: Vec<&'static str>,
    },
    /// A name that other gateways use for something of ours.
    #[error("no such field here; {instead}")]
    KnownElsewhere {
        /// Where it is said here.
        instead: &'static str,
    },
    /// A string where a number should be, and the like.
    #[error("{found} cannot stand here; expected {accepted}")]
    WrongKind {
        /// What stands there.
        found: &'static str,
        /// What would be accepted.
        accepted: String,
    },
    /// The right kind with a value that does not fit.
    #[error("{} does not fit; expected {accepted}", .found.as_deref().unwrap_or("this value"))]
    WrongValue {
        /// The value, when it is a number.
        found: Option<String>,
        /// What would be accepted.
        accepted: String,
    },
    /// Not among the words that may stand here.
    #[error("not a word that may stand here{}", accepts(.nearest.as_deref(), .accepted))]
    NotOneOf {
        /// What was most likely meant.
        nearest: Option<String>,
        /// The words.
        accepted: Vec<&'static str>,
    },
    /// A schema's own complaint.
    #[error("{reason}")]
    Unusable {
        /// The complaint.
        reason: String,
    },
    /// Something that must be there is not.
    #[error("missing; expected {accepted}")]
    Missing {
        /// What would be accepted.
        accepted: &'static str,
    },
    /// A list or text with nothing in it.
    #[error("empty; expected {accepted}")]
    Empty {
        /// What would be accepted.
        accepted: &'static str,
    },
    /// A name that cannot be one.
    #[error("not a usable name; expected {accepted}")]
    BadName {
        /// What would be accepted.
        accepted: &'static str,
    },
    /// A value that begins like a reference and is none.
    #[error(
        "not a whole reference; expected env.NAME, ${{NAME}}, env::NAME, os.environ/NAME or \
         file.PATH"
    )]
    BadReference,
    /// The variable is not set.
    #[error("the environment variable {name} is not set")]
    VariableUnset {
        /// The variable.
        name: String,
    },
    /// The variable holds nothing.
    #[error("the environment variable {name} is empty")]
    VariableEmpty {
        /// The variable.
        name: String,
    },
    /// The file of a secret cannot be read.
    #[error("the file {} cannot be read: {reason}", file.display())]
    SecretFileUnreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: io::ErrorKind,
    },
    /// The file of a secret holds nothing.
    #[error("the file {} is empty", file.display())]
    SecretFileEmpty {
        /// The file.
        file: PathBuf,
    },
    /// A key with blanks, line ends or letters that no header carries.
    #[error("not a usable key: it holds blanks, control characters or letters beyond ASCII")]
    SecretUnfit,
    /// A key that stands for one.
    #[error("a placeholder, not a key; expected env.NAME, file.PATH or the key itself")]
    SecretPlaceholder,
    /// No provider of that name.
    #[error(
        "no provider is called {}{}",
        shown(.name),
        accepts_names(.nearest.as_deref(), .accepted)
    )]
    UnknownProvider {
        /// The name.
        name: String,
        /// What was most likely meant.
        nearest: Option<String>,
        /// The names of those there are.
        accepted: Vec<String>,
    },
    /// No kind of that name.
    #[error("no such kind of provider{}", accepts(.nearest.as_deref(), .accepted))]
    UnknownKind {
        /// What was most likely meant.
        nearest: Option<String>,
        /// The kinds.
        accepted: Vec<&'static str>,
    },
    /// Nothing of that name.
    #[error("nothing is called {}{}", shown(.name), accepts_names(.nearest.as_deref(), .accepted))]
    UnknownName {
        /// The name.
        name: String,
        /// What was most likely meant.
        nearest: Option<String>,
        /// The names there are.
        accepted: Vec<String>,
    },
    /// A caller's key that another caller has.
    #[error("caller {} has this key already", shown(.owner))]
    KeyTaken {
        /// The other caller.
        owner: String,
    },
    /// A caller's key that could be guessed.
    #[error(
        "too short to be a key; expected at least {least} characters, as `backstop keys new` makes them"
    )]
    KeyTooShort {
        /// The fewest characters.
        least: usize,
    },
    /// A caller's key in the file itself.
    #[error("a key cannot stand in the file itself; expected {accepted}")]
    KeyInFile {
        /// What would be accepted.
        accepted: &'static str,
    },
    /// A key that the provider does not have.
    #[error(
        "{provider} has no key called {}{}",
        shown(.name),
        accepts_names(.nearest.as_deref(), .accepted)
    )]
    UnknownKey {
        /// The provider.
        provider: String,
        /// The name.
        name: String,
        /// What was most likely meant.
        nearest: Option<String>,
        /// The names of those there are.
        accepted: Vec<String>,
    },
    /// None of the keys that may be used serves the model.
    #[error("no key of {provider} that may be used here serves {}", shown(.model))]
    Unserved {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
    },
    /// Not `provider/model`.
    #[error("not a channel; expected \"provider/model\"")]
    BadChannel,
    /// The channel stands in this route before.
    #[error("{channel} stands in this route before")]
    ChannelTwice {
        /// `provider/model`.
        channel: String,
    },
    /// A provider without keys that needs one.
    #[error("{kind} needs a key; add keys = [\"env.NAME\"]{}", variable_instead(*.variable))]
    NoKeys {
        /// The kind of provider.
        kind: &'static str,
        /// The variable that would be taken without `keys`.
        variable: Option<&'static str>,
    },
    /// A key in a form that the kind has no use for.
    #[error("{kind} has no keys of this form; expected {}", .accepted.join(" or "))]
    KeyFormUnfit {
        /// The kind of provider.
        kind: &'static str,
        /// The fields of a key that may stand here.
        accepted: Vec<&'static str>,
    },
    /// A name for a model that speaks another dialect than the model it stands for.
    #[error(
        "the two names speak different dialects; expected names of one publisher's models, or a \
         public name that says the publisher"
    )]
    AliasDialect,
    /// A profile of AWS' that holds no key.
    #[error(
        "the profile {} {}; expected a profile with aws_access_key_id and \
         aws_secret_access_key",
        shown(.name),
        .why
    )]
    AwsProfile {
        /// The profile.
        name: String,
        /// What stands in the way.
        why: &'static str,
    },
    /// A setting that the kind has no use for.
    #[error("{kind} has no use for this")]
    SettingUnfit {
        /// The kind of provider.
        kind: &'static str,
    },
    /// A setting that can stand in no address.
    #[error("not usable in an address; expected {accepted}")]
    BadSetting {
        /// What would be accepted.
        accepted: &'static str,
    },
    /// An address, header or the like that `providers` refuses.
    #[error("{0}")]
    Provider(#[from] backstop_providers::Error),
    /// Traffic to a host outside would be readable on the way.
    #[error(
        "plain http:// to a host outside would show keys and prompts on the way; expected https://, \
         or allow_plain_http = true"
    )]
    PlainHttp,
    /// The provider's address is our own.
    #[error("this is the gateway's own address: requests would go round in circles")]
    OwnAddress,
    /// `resembles` on a provider whose wire is known.
    #[error("only a provider of kind \"custom\" resembles another")]
    ResemblesKnown,
    /// A header the gateway writes itself, or that frames the message.
    #[error("this header cannot be set here: the gateway writes it, or it frames the message")]
    HeaderReserved,
    /// Not a header's name.
    #[error("not a header name")]
    HeaderName,
    /// Not a header's value.
    #[error("not a header value: it holds line ends or control characters")]
    HeaderValue,
    /// The dialect has no words for it, whatever the server can do.
    #[error("the {dialect} dialect cannot carry this; only false can stand here")]
    BeyondDialect {
        /// The dialect.
        dialect: &'static str,
    },
    /// Numbers for something that is switched off.
    #[error("{field} has no meaning while enabled = false")]
    Disabled {
        /// The field.
        field: &'static str,
    },
    /// Not an address to listen on.
    #[error("not an address to listen on; expected one like \"127.0.0.1:8080\"")]
    BadListen,
    /// An address that others can reach, while callers need no key.
    #[error(
        "without callers anyone who reaches the gateway may ask, so only this machine may; expected \
         a loopback address such as \"127.0.0.1:8080\" or \"[::1]:8080\", or callers.<name>"
    )]
    OpenToOthers,
    /// A number outside its range.
    #[error("{found} is out of range; expected {accepted}")]
    OutOfRange {
        /// The number.
        found: String,
        /// What would be accepted.
        accepted: String,
    },
    /// Two fields that contradict each other.
    #[error("contradicts {other}; expected {accepted}")]
    Contradiction {
        /// The other field.
        other: &'static str,
        /// What would be accepted.
        accepted: &'static str,
    },
    /// Settings of the breaker.
    #[error("{0}")]
    Breaker(backstop_breaker::Error),
    /// Settings of the backoff or the retry budget.
    #[error("{0}")]
    Backoff(backstop_backoff::Error),
    /// Settings of a key.
    #[error("{0}")]
    Keypool(backstop_keypool::Error),
}

impl Problem {
    /// Whether a field's name is at fault rather than its value.
    pub(crate) fn is_about_a_name(&self) -> bool {
        matches!(
            self,
            Self::UnknownField { .. }
                | Self::KnownElsewhere { .. }
                | Self::HeaderName
                | Self::HeaderReserved
        )
    }

    /// An unknown field, or one that other gateways have and we say elsewhere.
    pub(crate) fn unknown_field(name: &str, accepted: &'static [&'static str]) -> Self {
        let elsewhere = ELSEWHERE
            .iter()
            .find(|(known, instead)| *known == name && !accepted.contains(instead));
        if let Some((_, instead)) = elsewhere {
            return Self::KnownElsewhere { instead };
        }
        Self::UnknownField {
            nearest: nearest(name, accepted.iter().copied()),
            accepted: accepted.to_vec(),
        }
    }

    /// A word that is not among those accepted.
    pub(crate) fn not_one_of(typed: &str, accepted: &[&'static str]) -> Self {
        Self::NotOneOf {
            nearest: nearest(typed, accepted.iter().copied()),
            accepted: accepted.to_vec(),
        }
    }
}

/// Names of other gateways' files, and where the same is said here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("api_key", "keys are listed in providers.<name>.keys[]"),
    ("api_base", "the address is providers.<name>.base_url"),
    (
        "num_retries",
        "retries are providers.<name>.network_config.max_retries",
    ),
    (
        "fallbacks",
        "the same model elsewhere is a further group of the route, another model a substitution",
    ),
    (
        "default_request_timeout_in_seconds",
        "timeouts are providers.<name>.timeouts.headers_ms and its neighbours",
    ),
    (
        "timeout",
        "timeouts are providers.<name>.timeouts.headers_ms and its neighbours",
    ),
    ("port", "the port is part of server.listen"),
    ("host", "the host is part of server.listen"),
    ("model_list", "models are routes.<name>"),
    ("caller_keys", "keys for callers are callers.<name>.keys[]"),
];

/// The candidate that a typist most likely meant; `None` when none is near.
pub(crate) fn nearest<'a>(
    typed: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<String> {
    /// From 0 (nothing in common) to 1. Jaro-Winkler below this finds words nobody meant.
    const NEAR: f64 = 0.8;
    let typed = typed.to_ascii_lowercase();
    candidates
        .map(|candidate| {
            (
                strsim::jaro_winkler(&typed, &candidate.to_ascii_lowercase()),
                candidate,
            )
        })
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate.to_owned())
}

/// `; did you mean x?` and the words that may stand here.
fn accepts<S: AsRef<str>>(nearest: Option<&str>, accepted: &[S]) -> String {
    let list: Vec<&str> = accepted.iter().map(AsRef::as_ref).collect();
    match nearest {
        Some(name) => format!("; did you mean {name}? expected {}", one_of(&list)),
        None => format!("; expected {}", one_of(&list)),
    }
}

/// The same for names of the file's own.
fn accepts_names(nearest: Option<&str>, accepted: &[String]) -> String {
    let list: Vec<String> = accepted.iter().map(|name| shown(name)).collect();
    let nearest = nearest.map(shown);
    if list.is_empty() {
        return "; there is none".to_owned();
    }
    accepts(nearest.as_deref(), &list)
}

fn one_of(list: &[&str]) -> String {
    match list {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn variable_instead(variable: Option<&str>) -> String {
    variable.map_or_else(String::new, |name| format!(", or set {name}"))
}
