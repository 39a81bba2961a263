//! What callers have used, by name: kept across reloads, settled by guards.

use std::collections::{HashMap, HashSet};

use backstop_admission::{Ask, At, Book, Denied, Limits, Reservation, Standing};
use backstop_units::CallerName;

use crate::sync::{Arc, Mutex, lock};

/// One book a caller. Names come from the configuration alone, so there are as many as it lists.
#[derive(Debug, Default)]
pub(crate) struct Books {
    by_name: Mutex<HashMap<CallerName, Arc<Mutex<Book>>>>,
}

impl Books {
    pub(crate) fn admit(
        &self,
        caller: &CallerName,
        limits: &Limits,
        at: At,
        ask: Ask,
    ) -> Result<AdmitGuard, Denied> {
        let book = self.book(caller);
        let reservation = lock(&book).admit(at, limits, ask)?;
        Ok(AdmitGuard {
            book,
            at,
            reservation: Some(reservation),
        })
    }

    pub(crate) fn standing(&self, caller: &CallerName, at: At) -> Standing {
        lock(&self.book(caller)).standing(at)
    }

    /// Forgets callers that the configuration names no more.
    pub(crate) fn retain(&self, callers: &HashSet<CallerName>) {
        lock(&self.by_name).retain(|name, _| callers.contains(name));
    }

    fn book(&self, caller: &CallerName) -> Arc<Mutex<Book>> {
        let mut books = lock(&self.by_name);
        if let Some(book) = books.get(caller) {
            return Arc::clone(book);
        }
        Arc::clone(books.entry(caller.clone()).or_default())
    }
}

/// A caller's place for one request, held for the whole journey. Dropped unsettled, it gives back
/// everything: nothing had been sent yet.
#[derive(Debug)]
#[must_use = "the place is given back when this is dropped"]
pub struct AdmitGuard {
    book: Arc<Mutex<Book>>,
    at: At,
    reservation: Option<Reservation>,
}

impl AdmitGuard {
    /// What was reserved.
    #[must_use]
    pub fn ask(&self) -> Ask {
        let ask = self.reservation.as_ref().map(Reservation::ask);
        ask.unwrap_or_default()
    }

    /// The request is over, and used so much.
    pub fn settle(mut self, at: At, used: Ask) {
        self.at = at;
        self.give_back(used);
    }

    fn give_back(&mut self, used: Ask) {
        if let Some(reservation) = self.reservation.take() {
            lock(&self.book).settle(self.at, reservation, used);
        }
    }
}

impl Drop for AdmitGuard {
    fn drop(&mut self) {
        self.give_back(Ask::default());
    }
}

#[cfg(test)]
mod tests {
    use backstop_units::{Moment, Tokens};

    use super::*;

    #[test]
    fn a_dropped_place_is_free_again_and_a_settled_one_counts() {
        let books = Books::default();
        let (team, at) = (CallerName::new("team"), At::new(Moment::START, 0));
        let limits = Limits {
            in_flight: Some(1),
            ..Limits::default()
        };
        let ask = Ask {
            tokens: Tokens(100),
            ..Ask::default()
        };
        let first = books.admit(&team, &limits, at, ask).expect("room");
        assert_eq!(
            books.admit(&team, &limits, at, ask).err(),
            Some(Denied::InFlight)
        );
        drop(first);
        assert_eq!(books.standing(&team, at).tokens, 0);
        let second = books.admit(&team, &limits, at, ask).expect("room again");
        let used = Ask {
            tokens: Tokens(7),
            ..Ask::default()
        };
        second.settle(at, used);
        let standing = books.standing(&team, at);
        assert_eq!((standing.tokens, standing.in_flight), (7, 0));
        // One caller's book is not another's.
        let other = CallerName::new("other");
        assert_eq!(books.standing(&other, at).requests, 0);
        books.retain(&HashSet::from([other]));
        assert_eq!(books.standing(&team, at).requests, 0);
    }

    #[test]
    fn exactly_as_many_as_the_limit_come_in_at_once() {
        let books = Books::default();
        let (team, at) = (CallerName::new("team"), At::new(Moment::START, 0));
        for limits in [
            Limits {
                requests_per_minute: Some(37),
                ..Limits::default()
            },
            Limits {
                in_flight: Some(37),
                ..Limits::default()
            },
        ] {
            let admitted: usize = std::thread::scope(|scope| {
                let askers: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            (0..125)
                                .filter_map(|_| {
                                    books.admit(&team, &limits, at, Ask::default()).ok()
                                })
                                .collect::<Vec<_>>()
                        })
                    })
                    .collect();
                // All are held until all have asked.
                let held: Vec<Vec<AdmitGuard>> = askers
                    .into_iter()
                    .map(|asker| asker.join().expect("no panic"))
                    .collect();
                held.iter().map(Vec::len).sum()
            });
            assert_eq!(admitted, 37, "{limits:?}");
            books.retain(&HashSet::new());
        }
    }
}
