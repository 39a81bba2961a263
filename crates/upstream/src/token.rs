//! Short-lived tokens: fetched once for all who wait, kept, renewed ahead of their end.
//!
//! One fetch serves every request that needs the token. Nobody owns it: those who wait poll it
//! together, one of them may leave without harm to the others, and when the last one has left it is
//! given up. The next to ask begins anew, as it does after a fetch that failed.

mod fetch;
mod proof;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use backstop_classifier::Verdict;
use backstop_providers::TokenSource;
use backstop_units::{KeyId, Secret};
use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared};
use tokio::time::{Instant, timeout};

use crate::Upstream;

/// How long before its end a token is renewed: this, or a fifth of its life where that is less. Our
/// choice. Google's and Entra's live for an hour.
const AHEAD: Duration = Duration::from_secs(300);

/// How long before its end a token is no longer used: this, or a twentieth of its life. Covers the
/// way to the provider, and clocks that differ.
const EDGE: Duration = Duration::from_secs(10);

/// How long the request that begins an early renewal waits for it, before it goes out with the
/// token that is there.
const EARLY_WAIT: Duration = Duration::from_secs(2);

/// How long an early renewal that came to nothing is not tried again.
const QUIET: Duration = Duration::from_secs(30);

/// A short-lived token.
#[derive(Debug)]
pub struct Token {
    secret: Secret,
    renew_at: Instant,
    ends: Instant,
}

impl Token {
    /// One that was asked for at `asked` and lives for `lifetime` from then.
    fn new(secret: Secret, asked: Instant, lifetime: Duration) -> Self {
        Self {
            secret,
            renew_at: asked + (lifetime - AHEAD.min(lifetime / 5)),
            ends: asked + (lifetime - EDGE.min(lifetime / 20)),
        }
    }

    /// The token itself, for the attempt that presents it.
    #[must_use]
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }
}

/// What a fetch comes to.
type Fetched = Result<Arc<Token>, Box<Verdict>>;
type Fetching = Pin<Box<dyn Future<Output = Fetched> + Send>>;

/// The tokens of all keys that stand for some. One for the process.
pub struct Tokens {
    upstream: Arc<Upstream>,
    cells: Mutex<HashMap<KeyId, Arc<Cell>>>,
}

impl Tokens {
    /// No tokens yet; they are fetched through `upstream`.
    #[must_use]
    pub fn new(upstream: Arc<Upstream>) -> Self {
        Self {
            upstream,
            cells: Mutex::default(),
        }
    }

    /// A token that `source` gives out, for `key`: the one that is there, or one that is fetched
    /// now. `wall` is the time of day.
    ///
    /// Dropping the future leaves the fetch to the others who wait for it.
    ///
    /// # Errors
    /// When none could be had: `credential` where the endpoint refused the proof, else `transient`.
    pub async fn token(
        &self,
        key: &KeyId,
        source: &TokenSource,
        wall: SystemTime,
    ) -> Result<Arc<Token>, Box<Verdict>> {
        let cell = self.cell(key, source);
        let (flight, spare) = match cell.ask(|| self.fetch(&cell, wall)) {
            Step::Ready(token) => return Ok(token),
            Step::Wait { flight, spare } => (flight, spare),
        };
        let Some(spare) = spare else {
            return flight.await;
        };
        if let Ok(Ok(token)) = timeout(EARLY_WAIT, flight).await {
            return Ok(token);
        }
        cell.state().quiet_until = Some(Instant::now() + QUIET);
        Ok(spare)
    }

    /// Another token in place of `refused`, which the provider does not take: the one that somebody
    /// else has had fetched since, or one that is fetched now.
    ///
    /// # Errors
    /// As for [`token`](Self::token).
    pub async fn renew(
        &self,
        key: &KeyId,
        source: &TokenSource,
        refused: Option<&Arc<Token>>,
        wall: SystemTime,
    ) -> Result<Arc<Token>, Box<Verdict>> {
        if let Some(refused) = refused {
            self.cell(key, source).forget(refused);
        }
        self.token(key, source, wall).await
    }

    /// Forgets the tokens of all other keys.
    pub fn retain(&self, keys: &HashSet<KeyId>) {
        let mut cells = lock(&self.cells);
        cells.retain(|key, _| keys.contains(key));
    }

    /// The place of the key's token; a new one where its source is another than before.
    fn cell(&self, key: &KeyId, source: &TokenSource) -> Arc<Cell> {
        let mut cells = lock(&self.cells);
        if let Some(cell) = cells.get(key)
            && cell.source.is(source)
        {
            return Arc::clone(cell);
        }
        let cell = Arc::new(Cell {
            source: source.clone(),
            state: Mutex::default(),
        });
        cells.insert(key.clone(), Arc::clone(&cell));
        cell
    }

    fn fetch(&self, cell: &Arc<Cell>, wall: SystemTime) -> Fetching {
        let (upstream, cell) = (Arc::clone(&self.upstream), Arc::clone(cell));
        Box::pin(async move {
            let fetched = fetch::fetch(&upstream, &cell.source, wall).await;
            cell.land(fetched)
        })
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = lock(&self.cells).len();
        f.debug_struct("Tokens")
            .field("keys", &keys)
            .finish_non_exhaustive()
    }
}

/// The place of one key's token.
struct Cell {
    source: TokenSource,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    token: Option<Arc<Token>>,
    /// The fetch under way, as long as somebody waits for it.
    flight: Option<WeakShared<Fetching>>,
    /// Until when no early renewal is tried.
    quiet_until: Option<Instant>,
}

/// What somebody who needs a token does.
enum Step {
    Ready(Arc<Token>),
    Wait {
        flight: Shared<Fetching>,
        /// A token that is good for a while yet.
        spare: Option<Arc<Token>>,
    },
}

impl Cell {
    fn ask(&self, begin: impl FnOnce() -> Fetching) -> Step {
        let now = Instant::now();
        let mut state = self.state();
        let spare = state.token.clone().filter(|token| now < token.ends);
        if let Some(token) = &spare
            && (now < token.renew_at || state.quiet_until.is_some_and(|until| now < until))
        {
            return Step::Ready(Arc::clone(token));
        }
        let under_way = state.flight.as_ref().and_then(WeakShared::upgrade);
        match (under_way, spare) {
            // Somebody else sees to the renewal.
            (Some(_), Some(token)) => Step::Ready(token),
            (Some(flight), None) => Step::Wait {
                flight,
                spare: None,
            },
            (None, spare) => {
                let flight = begin().shared();
                state.flight = flight.downgrade();
                Step::Wait { flight, spare }
            }
        }
    }

    /// A fetch is over.
    fn land(&self, fetched: Result<Token, Box<Verdict>>) -> Fetched {
        let fetched = fetched.map(Arc::new);
        let mut state = self.state();
        state.flight = None;
        if let Ok(token) = &fetched {
            state.token = Some(Arc::clone(token));
            state.quiet_until = None;
        }
        fetched
    }

    fn forget(&self, refused: &Arc<Token>) {
        let mut state = self.state();
        let same = |token: &Arc<Token>| Arc::ptr_eq(token, refused);
        if state.token.as_ref().is_some_and(same) {
            state.token = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// No state here is ever half written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
