//! The process's log: one event a line on standard error, for people or for machines.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};

use thiserror::Error;
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::debug_fn;

use crate::escape::{JsonLines, Plain};

/// How the log is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The form of a line. Default: [`Format::Pretty`].
    pub format: Format,
    /// Which events are written, as `level` or `target=level` pairs with commas between them.
    /// Default: `info`. The operator's configuration or command line sets it; the environment is
    /// not read here.
    pub filter: String,
    /// Whether colours are wanted. They are used only when standard error is a terminal, and only
    /// by [`Format::Pretty`]. Default: true.
    pub ansi: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: Format::Pretty,
            filter: "info".to_owned(),
            ansi: true,
        }
    }
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Time, level, target and fields in one readable line.
    #[default]
    Pretty,
    /// One JSON object a line, the event's fields at its top level.
    Json,
}

/// Why the log could not be started.
#[derive(Debug, Error)]
pub enum Error {
    /// The filter is not a list of levels and `target=level` pairs.
    #[error(
        "`{filter}` is not a log filter; write a level such as `info`, or `target=level` pairs"
    )]
    Filter {
        /// The filter as it was given.
        filter: String,
        /// What the parser stumbled over.
        source: tracing_subscriber::filter::ParseError,
    },
    /// A log was started before in this process.
    #[error("the log of this process was started before")]
    Started,
}

/// Starts the log of this process on standard error. To be called once, before anything is logged.
///
/// # Errors
/// When the filter cannot be read, or a log was started before.
pub fn init_logs(options: &Options) -> Result<(), Error> {
    let ansi = options.ansi && io::stderr().is_terminal();
    let subscriber = subscriber(options, ansi, io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| Error::Started)
}

/// The log as described by `options`, written to whatever `out` makes.
fn subscriber<W>(
    options: &Options,
    ansi: bool,
    out: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, Error>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(&options.filter).map_err(|source| Error::Filter {
        filter: options.filter.clone(),
        source,
    })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    Ok(match options.format {
        Format::Pretty => {
            let fields = debug_fn(|line, field, value| match field.name() {
                "message" => write!(Plain(line), "{value:?}"),
                name => write!(Plain(line), "{name}={value:?}"),
            });
            let log = log.with_ansi(ansi).with_writer(out);
            Box::new(log.fmt_fields(fields.delimited(" ")).finish())
        }
        Format::Json => {
            let log = log.json().flatten_event(true).with_ansi(false);
            Box::new(log.with_writer(Guarded(out)).finish())
        }
    })
}

/// Makes the writers of `W`, each behind [`JsonLines`].
struct Guarded<W>(W);

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for Guarded<W> {
    type Writer = JsonLines<W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        JsonLines(self.0.make_writer())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use backstop_units::RequestId;
    use tracing::subscriber::with_default;

    use super::*;
    use crate::routing::{Level, routing};

    /// What the log of `options` holds after `act`.
    fn logged(options: &Options, act: impl FnOnce()) -> String {
        let page = Arc::new(Mutex::new(Vec::new()));
        let subscriber = subscriber(options, false, Page(Arc::clone(&page))).unwrap();
        with_default(subscriber, act);
        let bytes = page.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[derive(Clone)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Page {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    fn options(format: Format, filter: &str) -> Options {
        Options {
            format,
            filter: filter.to_owned(),
            ansi: false,
        }
    }

    const SENTENCE: &str = "Retry 1/3 for openai/gpt-4o (previous attempt failed: transient)";

    #[test]
    fn a_routing_sentence_is_one_line_with_its_request() {
        let id = RequestId::new("r-1");
        let text = logged(&options(Format::Pretty, "info"), || {
            routing(Level::INFO, &id, SENTENCE);
        });
        assert_eq!(text.lines().count(), 1);
        let wanted = format!("INFO backstop::routing: request_id=r-1 sentence={SENTENCE}");
        assert!(text.contains(&wanted), "{text}");

        let text = logged(&options(Format::Json, "info"), || {
            routing(Level::WARN, &id, SENTENCE);
        });
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["request_id"], "r-1");
        assert_eq!(line["sentence"], SENTENCE);
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["target"], "backstop::routing");
    }

    #[test]
    fn every_level_reaches_the_log_and_the_filter_holds() {
        let id = RequestId::new("r-1");
        let levels = [
            Level::ERROR,
            Level::WARN,
            Level::INFO,
            Level::DEBUG,
            Level::TRACE,
        ];
        for (filter, lines) in [
            ("trace", 5),
            ("info", 3),
            ("off", 0),
            ("info,backstop::routing=warn", 2),
        ] {
            let text = logged(&options(Format::Pretty, filter), || {
                for level in levels {
                    routing(level, &id, SENTENCE);
                }
            });
            assert_eq!(text.lines().count(), lines, "{filter}");
        }
    }

    #[test]
    fn what_a_caller_typed_cannot_forge_a_line_or_touch_the_terminal() {
        let hostile = RequestId::new("r\n2026 INFO forged\u{1b}[2J\u{9b}31m\u{202e}");
        for format in [Format::Pretty, Format::Json] {
            let text = logged(&options(format, "info"), || {
                routing(Level::INFO, &hostile, SENTENCE);
                tracing::info!(who = hostile.as_str(), "said {hostile}");
            });
            assert_eq!(text.lines().count(), 2, "{text:?}");
            for c in ['\u{1b}', '\u{9b}', '\u{202e}'] {
                assert!(!text.contains(c), "{text:?}");
            }
        }
    }

    #[test]
    fn a_filter_nobody_can_read_is_refused_by_name() {
        let refused = init_logs(&options(Format::Pretty, "backstop=loud"));
        let error = refused.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("`backstop=loud` is not a log filter")
        );
    }
}
