//! Who may ask, for what, and how much of it: callers, their borders, limits and budgets.
//!
//! A caller presents a key; the [`Register`] knows its hash and says whose it is. The caller's
//! [`Border`] says which routes and providers it may reach, its [`Permissions`] what it may ask for
//! besides, its [`Limits`] how much. A [`Book`] keeps what a caller used: [`Book::admit`] either
//! hands out a [`Reservation`] or says why not and when to come back; [`Book::settle`] puts what was
//! really used in its place.
//!
//! Left to others: where a key stands in a request and how a refusal is told (server), who keeps the
//! books of all callers and settles them when a request is dropped (state), what a file says (config).
//!
//! The invariants: **no more than the limit is ever admitted, in any minute and at any moment, and
//! money spent exceeds a budget by one reservation at the most.** A key is never kept, only its hash.
//!
//! ```
//! use backstop_admission::{Ask, At, Book, Denied, Limits};
//! use backstop_units::Moment;
//!
//! let limits = Limits { requests_per_minute: Some(1), ..Limits::default() };
//! let mut book = Book::default();
//! let at = At::new(Moment::START, 1_780_000_000);
//! let first = book.admit(at, &limits, Ask::default()).expect("the first of one");
//! let second = book.admit(at, &limits, Ask::default());
//! assert!(matches!(second, Err(Denied::Requests { retry_after: Some(_) })));
//! book.settle(at, first, Ask::default());
//! ```

mod key;
mod register;

mod caller;
mod denied;

mod account;
mod book;
mod price;
mod window;

mod error;

pub use account::Calendar;
pub use book::{Ask, At, Book, Reservation, Standing};
pub use caller::{Allowed, Border, Caller, Limits, Permissions, expiry};
pub use denied::{Denied, Period};
pub use error::Error;
pub use key::{KeyHash, mint};
pub use price::{Price, estimate};
pub use register::Register;
pub use window::Window;
