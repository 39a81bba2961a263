//! Which caller gets what from which provider: every surface before every dialect, feature by
//! feature, played against the real server over sockets.
//!
//! A cell is played whole and streamed. Both ways are looked at: what the provider got, in its own
//! form, and what the caller got, by its surface's grammar. A request whose contract the provider's
//! dialect cannot carry must be refused before anyone is asked, and say why.
//!
//! The one invariant: a cell that was not played and looked at both ways has not passed.

mod answer;
mod arrival;
mod question;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use backstop_faultsim::{Script, Sim, Step};
use serde_json::{Value, json};

use self::answer::{INPUT, OUTPUT, Said};
use crate::gateway::TestGateway;
use crate::surface::{Call, Counts, Form, Rules, Stop, Surface, Told, error_message, told};
use crate::upstream::UpstreamDialect;

/// What a caller may want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Words, at once.
    Text,
    /// Words, as a stream.
    Stream,
    /// A call of a tool.
    Tools,
    /// Two calls at once.
    ParallelTools,
    /// An answer that keeps to a JSON schema.
    Schema,
    /// A picture in the question.
    Images,
    /// Reasoning before the answer.
    Reasoning,
    /// Counts, with those of the cache and of reasoning.
    Usage,
    /// An answer that declines.
    Refusal,
    /// A limit that is met.
    Error,
}

impl Feature {
    /// All, in the order of the table.
    pub const ALL: [Self; 10] = [
        Self::Text,
        Self::Stream,
        Self::Tools,
        Self::ParallelTools,
        Self::Schema,
        Self::Images,
        Self::Reasoning,
        Self::Usage,
        Self::Refusal,
        Self::Error,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Stream => "stream",
            Self::Tools => "tools",
            Self::ParallelTools => "parallel tools",
            Self::Schema => "schema",
            Self::Images => "images",
            Self::Reasoning => "reasoning",
            Self::Usage => "usage",
            Self::Refusal => "refusal",
            Self::Error => "error",
        }
    }

    const fn said(self) -> Said {
        let said = Said {
            text: "Hällo wörld",
            reasoning: "",
            calls: &[],
            refused: false,
        };
        match self {
            Self::Tools => Said {
                text: "",
                calls: &["weather"],
                ..said
            },
            Self::ParallelTools => Said {
                text: "",
                calls: &["weather", "time"],
                ..said
            },
            Self::Schema => Said {
                text: answer::ARGUMENTS,
                ..said
            },
            Self::Reasoning => Said {
                reasoning: "Let me think.",
                ..said
            },
            Self::Refusal => Said {
                text: "That I will not say.",
                refused: true,
                ..said
            },
            _ => said,
        }
    }
}

/// How a cell went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Both sides got what they should.
    Pass,
    /// The contract is not served, for this reason; nobody was asked.
    Refused(String),
    /// What is wrong.
    Fail(String),
}

/// One place of the table.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Whose caller asks.
    pub surface: Surface,
    /// Whose provider answers.
    pub upstream: Surface,
    /// What is asked for.
    pub feature: Feature,
    /// How it went.
    pub outcome: Outcome,
}

/// The page that holds the table.
#[must_use]
pub fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/compatibility.md")
}

/// Plays every cell.
pub async fn play() -> Vec<Cell> {
    let mut cells = Vec::new();
    for surface in Surface::SERVED {
        for upstream in Surface::ALL {
            if !UpstreamDialect(upstream).serves(surface) {
                continue;
            }
            for feature in Feature::ALL {
                let outcome = cell(surface, upstream, feature).await;
                cells.push(Cell {
                    surface,
                    upstream,
                    feature,
                    outcome,
                });
            }
        }
    }
    cells
}

/// Plays one cell in each of its forms; the first that does not pass is how it went.
async fn cell(surface: Surface, upstream: Surface, feature: Feature) -> Outcome {
    let streamed: &[bool] = match feature {
        Feature::Text => &[false],
        Feature::Stream => &[true],
        _ => &[false, true],
    };
    for form in streamed
        .iter()
        .flat_map(|streamed| surface.forms(*streamed))
    {
        match one(surface, upstream, feature, *form).await {
            Ok(Outcome::Pass) => {}
            Ok(other) => return other,
            Err(fault) => return Outcome::Fail(format!("{form:?}: {fault}")),
        }
    }
    Outcome::Pass
}

/// The words of a limit.
const LIMIT: &str = "Too much, too soon.";

async fn one(
    surface: Surface,
    upstream: Surface,
    feature: Feature,
    form: Form,
) -> Result<Outcome, String> {
    let step: Step = match feature {
        Feature::Error => answer::limit(upstream, LIMIT),
        _ => answer::step(upstream, &feature.said(), form != Form::Whole),
    };
    let side = UpstreamDialect(upstream);
    let sim = Sim::bind("127.0.0.1:0", Script::new().step(step)).await;
    let sim = sim.map_err(|error| error.to_string())?;
    let gateway = TestGateway::start(&side.config(), &[(side.provider(), &sim)]).await;
    let model = side.model();
    let body = question::question(surface, feature, &model, form);
    let call = gateway.call("POST", &surface.path(&model, form));
    let call = call
        .header("content-type", "application/json")
        .body(body.to_string());
    let answer = call.send().await;
    let json = answer.json();
    if sim.attempt_count() == 0 {
        let message = error_message(surface, answer.status, &json)?;
        return match message.split_once("as it is") {
            Some((_, why)) if answer.status == 400 => Ok(Outcome::Refused(reason(why))),
            _ => Err(format!("nobody was asked: {} {message}", answer.status)),
        };
    }
    arrival::check(upstream, feature, form, &sim.attempt(1))?;
    if feature == Feature::Error {
        let message = error_message(surface, answer.status, &json)?;
        return match answer.status == 429 && message.contains(LIMIT) {
            true => Ok(Outcome::Pass),
            false => Err(format!("{} {message}", answer.status)),
        };
    }
    if answer.status != 200 {
        return Err(format!("{} {}", answer.status, answer.text()));
    }
    let got = told(surface, form, &answer.body, Rules::Strict);
    let got = match (got, surface == upstream) {
        (Err(_), true) => told(surface, form, &answer.body, Rules::Lenient)?,
        (got, _) => got?,
    };
    let want = wanted(surface, upstream, &feature.said());
    let got = Told {
        calls: got
            .calls
            .into_iter()
            .map(|call| Call {
                id: String::new(),
                ..call
            })
            .collect(),
        refused: false,
        ..got
    };
    if got == want {
        Ok(Outcome::Pass)
    } else {
        Err(format!("{want:?} became {got:?}"))
    }
}

/// The reason within the words of a refusal.
fn reason(why: &str) -> String {
    why.trim_matches([' ', '.', ':', '(', ')']).to_owned()
}

/// What the caller must hear, as far as the surface has words for it.
fn wanted(surface: Surface, upstream: Surface, said: &Said) -> Told {
    let arguments: Value = json!({"city": "Bern"});
    let call = |name: &&str| Call {
        id: String::new(),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    };
    // Neither has a word for it, or for words that decline.
    let in_words = matches!(upstream, Surface::OpenAiChat | Surface::OpenAiResponses);
    let no_word = upstream == Surface::CohereV2
        || surface == Surface::CohereV2
        || (matches!(surface, Surface::Gemini | Surface::BedrockConverse) && in_words);
    let counts = Counts {
        input: INPUT.0,
        output: OUTPUT.0,
        cached: INPUT.1,
        reasoning: match (surface, upstream) {
            (Surface::BedrockConverse, _) | (_, Surface::BedrockConverse) => 0,
            _ => OUTPUT.1,
        },
    };
    Told {
        text: said.text.to_owned(),
        refused: false,
        reasoning: said.reasoning.to_owned(),
        calls: said.calls.iter().map(call).collect(),
        usage: Some(counts),
        stop: Some(match (said.refused && !no_word, said.calls.is_empty()) {
            (true, _) => Stop::Filter,
            (_, true) => Stop::End,
            (_, false) => Stop::Tools,
        }),
        error: None,
    }
}

/// The table as a page of the documentation.
#[must_use]
pub fn markdown(cells: &[Cell]) -> String {
    let refused = |cell: &Cell| match &cell.outcome {
        Outcome::Refused(why) => Some(why.clone()),
        _ => None,
    };
    let reasons: Vec<String> = cells
        .iter()
        .filter_map(refused)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let mut page = "# Who gets what from whom\n\n\
        Made by `cargo xtask compat`; do not edit. A caller's surface before a provider's dialect, feature by feature, \
        played against the real\nserver: what the provider got and what the caller got were both looked at, whole and \
        streamed.\n\n\
        `pass`: both are right. A number: the request is refused before anyone is asked, for the reason below, or goes \
        to another channel of\nits route that can carry it. `FAIL`: neither.\n".to_owned();
    for surface in Surface::SERVED {
        let _ = write!(
            page,
            "\n## Callers of {}\n\n| provider speaks |",
            surface.name()
        );
        Feature::ALL.iter().for_each(|feature| {
            let _ = write!(page, " {} |", feature.title());
        });
        page += "\n|---|";
        page += &"---|".repeat(Feature::ALL.len());
        page.push('\n');
        for upstream in Surface::ALL {
            let row = cells
                .iter()
                .filter(|cell| (cell.surface, cell.upstream) == (surface, upstream));
            let words = row.map(|cell| match &cell.outcome {
                Outcome::Pass => "pass".to_owned(),
                Outcome::Fail(_) => "FAIL".to_owned(),
                Outcome::Refused(why) => {
                    let place = reasons.iter().position(|reason| reason == why);
                    format!("{}", place.map_or(0, |place| place + 1))
                }
            });
            let words: Vec<String> = words.collect();
            if !words.is_empty() {
                let _ = writeln!(page, "| {} | {} |", upstream.name(), words.join(" | "));
            }
        }
    }
    if !reasons.is_empty() {
        page += "\n## Reasons\n\n";
        for (number, reason) in (1..).zip(&reasons) {
            let _ = writeln!(page, "{number}. {reason}");
        }
    }
    page
}
