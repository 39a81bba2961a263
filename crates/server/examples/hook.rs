//! A gateway with a hook of one's own: a cap on the tokens that one provider may use.
//!
//! `OPENAI_API_KEY=... cargo run -p backstop-server --example hook` listens on a free loopback port.
//! Requests for `openai/...` go on until 1,000 tokens were used; after that they are turned away,
//! or served by whoever else the route lists.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backstop_classifier::Class;
use backstop_config::{Sources, from_environment};
use backstop_ledger::Ledger;
use backstop_server::{
    Aftermath, Chance, Clock, ConnectionLimits, Gateway, Hook, HookAsk, HookDecision, HookError,
    Parts, Say, serve,
};
use backstop_state::{Limits, State};
use backstop_telemetry::Metrics;
use backstop_upstream::{Options, Upstream};
use tokio::net::TcpListener;

/// Counts a provider's tokens, and keeps requests away from it once they are used up.
struct TokenCap {
    provider: &'static str,
    cap: u64,
    used: AtomicU64,
}

impl Hook for TokenCap {
    fn name(&self) -> &str {
        "token_cap"
    }

    fn before_attempt<'a>(&'a self, ask: &'a HookAsk) -> Say<'a> {
        let used = self.used.load(Ordering::Relaxed);
        if ask.channel.provider.as_str() != self.provider || used < self.cap {
            return HookDecision::Pass.into();
        }
        // Another channel may serve the request, also a substitution that names `quota`. If none
        // does, the caller gets this.
        let error = HookError::new(
            429,
            "token_cap_reached",
            "The tokens for today are used up.",
        )
        .retry_after(Duration::from_secs(3600))
        .like(Class::Quota);
        HookDecision::not_here(error).into()
    }

    fn after_attempt<'a>(&'a self, ask: &'a HookAsk, aftermath: &'a Aftermath) -> Say<'a> {
        // The row of the answer is the last one. Streams are not seen here: what they used stands
        // in the ledger.
        let usage = ask.trail.last().and_then(|row| row.usage?.total());
        if let (Aftermath::Answered, Some(tokens)) = (aftermath, usage) {
            self.used.fetch_add(tokens.0, Ordering::Relaxed);
        }
        HookDecision::Pass.into()
    }
}

/// The process's environment.
struct Environment;

impl Sources for Environment {
    #[allow(clippy::disallowed_methods, reason = "this is where it is read")]
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let snapshot = Arc::new(from_environment(&Environment, 1)?);
    let (gateway, _reloader) = Gateway::new(Parts {
        snapshot,
        state: State::new(Limits::default()),
        upstream: Upstream::new(Options::default())?,
        metrics: Arc::new(Metrics::new()),
        ledger: Ledger::new(100),
        clock: Clock::start(),
        chance: Chance::default(),
        hooks: vec![Arc::new(TokenCap {
            provider: "openai",
            cap: 1_000,
            used: AtomicU64::new(0),
        })],
    });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    let never = std::future::pending();
    serve(listener, gateway, ConnectionLimits::default(), never).await?;
    Ok(())
}
