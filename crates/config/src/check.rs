//! From the file as typed to what it means.

mod caller;
mod ledger;
mod provider;
mod route;
mod server;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backstop_units::ProviderId;

use self::provider::Station;
use crate::fault::{Fault, Faults, Problem};
use crate::path::FieldPath;
use crate::raw::{Millis, Raw, RawTrail};
use crate::snapshot::{Origin, Snapshot, TrailChoice};
use crate::sources::{Resolver, Sources};
use crate::tree::Document;

/// The stage between the file and the snapshot: goes on after a fault, so that one run reports them
/// all, and gives out nothing while there is one.
pub(crate) struct Check<'a> {
    document: Option<Document>,
    resolver: Resolver<'a>,
    faults: Faults,
}

impl<'a> Check<'a> {
    /// For the file that `document` was read from.
    pub(crate) fn of_file(file: &Path, document: Document, sources: &'a dyn Sources) -> Self {
        Self {
            document: Some(document),
            resolver: Resolver::new(sources, file),
            faults: Faults::default(),
        }
    }

    /// For settings that stand in no file.
    pub(crate) fn of_environment(sources: &'a dyn Sources) -> Self {
        Self {
            document: None,
            resolver: Resolver::new(sources, Path::new("")),
            faults: Faults::default(),
        }
    }

    /// Builds the snapshot.
    ///
    /// # Errors
    /// Every fault, in the order of the file.
    pub(crate) fn snapshot(
        mut self,
        raw: Raw,
        origin: Origin,
        hash: u64,
        version: u64,
    ) -> Result<Snapshot, Faults> {
        let top = FieldPath::default();
        let mut raw_server = raw.server.unwrap_or_default();
        let raw_tls = raw_server.tls.take();
        let open = raw
            .callers
            .as_ref()
            .is_some_and(|callers| !callers.is_empty());
        let server = self.server(&top.field("server"), &raw_server, open);
        let tls = raw_tls.and_then(|tls| self.tls(&top.field("server").field("tls"), &tls));
        let limits = self.limits(&top.field("limits"), &raw.limits.unwrap_or_default());
        let session = self.session(&top.field("session"), &raw.session.unwrap_or_default());
        let ledger = raw
            .ledger
            .and_then(|raw| self.ledger(&top.field("ledger"), &raw));
        let stations = self.providers(
            &top.field("providers"),
            raw.providers.unwrap_or_default(),
            server.listen,
        );
        let defaults = self.defaults(&top.field("defaults"), &raw.defaults.unwrap_or_default());
        let routes = self.routes(
            &top.field("routes"),
            raw.routes.unwrap_or_default(),
            &stations,
            defaults,
        );
        let names: Vec<String> = stations.keys().cloned().collect();
        let callers = raw.callers.unwrap_or_default();
        let callers = self.callers(&top.field("callers"), callers, &routes, &names);
        let prices = raw.prices.unwrap_or_default();
        let prices = self.prices(&top.field("prices"), prices, &stations);
        if !self.faults.is_empty() {
            self.faults.sort();
            return Err(self.faults);
        }

        let stations: HashMap<ProviderId, Station> = stations
            .into_values()
            .flatten()
            .map(|station| (station.provider.id().clone(), station))
            .collect();
        let channels = route::channels(&routes);
        Ok(Snapshot {
            version,
            hash,
            origin,
            server,
            tls,
            files: self.resolver.files(),
            limits,
            trail: match raw.trail {
                Some(RawTrail::Always) => TrailChoice::Always,
                Some(RawTrail::OnRequest) | None => TrailChoice::OnRequest,
            },
            session,
            ledger,
            patterns: stations
                .iter()
                .map(|(id, station)| (id.clone(), Arc::clone(&station.pattern)))
                .collect(),
            providers: stations
                .into_iter()
                .map(|(id, station)| (id, station.provider))
                .collect(),
            routes,
            channels,
            defaults,
            callers,
            prices,
        })
    }

    /// Notes a fault at `path`.
    fn fault(&mut self, path: &FieldPath, problem: Problem) {
        let fault = match &self.document {
            Some(document) => document.fault(path.clone(), problem),
            None => Fault {
                file: "environment".to_owned(),
                position: None,
                path: path.clone(),
                problem,
            },
        };
        self.faults.push(fault);
    }

    /// The value, or a fault at `path` and nothing.
    fn take<T>(&mut self, path: &FieldPath, value: Result<T, Problem>) -> Option<T> {
        value.map_err(|problem| self.fault(path, problem)).ok()
    }

    /// A duration within bounds, both included; `default` when none is typed or it is out of them.
    fn duration(
        &mut self,
        path: &FieldPath,
        typed: Option<Millis>,
        default: Duration,
        (least, most): (Duration, Duration),
    ) -> Duration {
        let Some(Millis(duration)) = typed else {
            return default;
        };
        if (least..=most).contains(&duration) {
            return duration;
        }
        let problem = Problem::OutOfRange {
            found: duration.as_millis().to_string(),
            accepted: format!("{} to {} ms", least.as_millis(), most.as_millis()),
        };
        self.fault(path, problem);
        default
    }

    /// A number within bounds, both included; `default` when none is typed or it is out of them.
    fn count(
        &mut self,
        path: &FieldPath,
        typed: Option<u64>,
        default: u64,
        (least, most): (u64, u64),
    ) -> u64 {
        let Some(number) = typed else {
            return default;
        };
        if (least..=most).contains(&number) {
            return number;
        }
        let problem = Problem::OutOfRange {
            found: number.to_string(),
            accepted: format!("{least} to {most}"),
        };
        self.fault(path, problem);
        default
    }
}

/// Whether a text can name a provider, a key or a group: it stands in `provider/model`, in ids and
/// in log lines, so it holds letters, digits and `. _ - : @ +` only.
fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-:@+".contains(c))
}

/// What [`is_name`] accepts.
const A_NAME: &str = "1 to 64 letters, digits or . _ - : @ +";
