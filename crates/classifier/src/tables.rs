//! Every provider's table, and the general one behind them.
//!
//! [`Family::General`] reads what stands before a provider, the proxy's table, as its own.

mod anthropic;
mod azure;
mod bedrock;
mod cerebras;
mod cohere;
mod dashscope;
mod deepseek;
mod echo;
mod fireworks;
mod general;
mod google;
mod groq;
mod llamacpp;
mod lmstudio;
mod minimax;
mod mistral;
mod moonshot;
mod nvidia;
mod ollama;
mod openai;
mod openrouter;
mod perplexity;
mod proxy;
mod together;
mod vllm;
mod xai;
mod zhipu;

use std::sync::LazyLock;

use crate::evidence::Family;
use crate::index::Openings;
use crate::kinds;
use crate::table::{Compiled, Table};

/// The tables of single providers, for docs and tools; that of [`Family::General`] is the proxies'.
#[must_use]
pub fn tables() -> &'static [&'static Table] {
    &[
        &openai::TABLE,
        &azure::TABLE,
        &anthropic::TABLE,
        &bedrock::TABLE,
        &google::GEMINI,
        &google::VERTEX,
        &groq::TABLE,
        &mistral::TABLE,
        &cohere::TABLE,
        &openrouter::TABLE,
        &xai::TABLE,
        &deepseek::TABLE,
        &together::TABLE,
        &fireworks::TABLE,
        &cerebras::TABLE,
        &perplexity::TABLE,
        &nvidia::TABLE,
        &ollama::TABLE,
        &vllm::TABLE,
        &lmstudio::TABLE,
        &llamacpp::TABLE,
        &zhipu::TABLE,
        &dashscope::TABLE,
        &minimax::TABLE,
        &moonshot::TABLE,
        &proxy::TABLE,
    ]
}

/// The table that every family reads last.
#[must_use]
pub fn general_table() -> &'static Table {
    &general::TABLE
}

/// The phrases that every family reads first: messages that echo the request.
#[must_use]
pub fn echo_table() -> &'static Table {
    &echo::TABLE
}

static ECHO: LazyLock<Compiled> = LazyLock::new(|| Compiled::new(&echo::TABLE));
static GENERAL: LazyLock<Compiled> = LazyLock::new(|| Compiled::new(&general::TABLE));
static BY_FAMILY: LazyLock<Vec<Option<Compiled>>> = LazyLock::new(|| {
    let own = |family: Family| tables().iter().find(|table| table.family == family);
    Family::ALL
        .iter()
        .map(|family| own(*family).map(|table| Compiled::new(table)))
        .collect()
});

/// How the phrases of all tables begin.
pub(crate) static PHRASES: LazyLock<Openings> = LazyLock::new(|| {
    let tables = all_compiled().map(|compiled| &compiled.phrases);
    Openings::of(tables.chain(kinds::phrase_indexes()))
});

/// How the codes of all tables begin.
pub(crate) static CODES: LazyLock<Openings> = LazyLock::new(|| {
    let tables = all_compiled().map(|compiled| &compiled.codes);
    Openings::of(tables.chain([kinds::code_index()]))
});

fn all_compiled() -> impl Iterator<Item = &'static Compiled> {
    let own = BY_FAMILY.iter().flatten();
    [&*ECHO, &*GENERAL].into_iter().chain(own)
}

/// The compiled tables of a family, in reading order.
pub(crate) fn compiled(family: Family) -> [Option<&'static Compiled>; 3] {
    let own = BY_FAMILY.get(family as usize).and_then(Option::as_ref);
    [Some(&ECHO), own, Some(&GENERAL)]
}
