//! From evidence to a verdict, in a fixed order: code, message, status.

use std::borrow::Cow;

use crate::evidence::{Clock, Evidence, Transport};
use crate::facts::{BODY_LIMIT, Facts};
use crate::hints;
use crate::index::Words;
use crate::kinds;
use crate::table::{Compiled, Rule};
use crate::tables;
use crate::verdict::{Class, Code, Field, Kind, Sent, Signal, Verdict};
use crate::words::Prose;

/// Says what kind of failure the evidence shows.
///
/// Reads at most [`BODY_LIMIT`] bytes of the body, in time linear in them, and never fails: bytes
/// that say nothing leave the decision to the status.
#[must_use]
pub fn classify(evidence: &Evidence<'_>) -> Verdict {
    if let Some(transport) = evidence.transport {
        return by_transport(transport, evidence);
    }
    let cut = evidence.body.len() > BODY_LIMIT;
    let bytes = &evidence.body[..evidence.body.len().min(BODY_LIMIT)];
    // Invalid bytes become replacement characters; the words around them still count.
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    };
    let facts = Facts::read(&text, cut);
    let case = Case::new(evidence, &facts);
    let Finding {
        class,
        kind,
        signal,
    } = case.decide();
    let kind = kind.or_else(|| case.finer(class));
    let failed = evidence.status.is_some_and(|status| status >= 400);
    let headers = evidence.headers.filter(|_| failed);
    Verdict {
        class,
        kind,
        signal,
        code: case.code().or_else(|| case.number_beside(evidence.status)),
        status: evidence.status,
        retry_after: hints::retry_after(facts.hint(), headers, evidence.now),
        should_retry: headers.and_then(hints::should_retry),
        sent: Sent::Maybe,
    }
}

/// The ways a connection ends. A refused name or address, or a broken handshake, never carried
/// the request; after that nobody knows.
fn by_transport(transport: Transport, evidence: &Evidence<'_>) -> Verdict {
    let (class, sent) = match transport {
        Transport::Dns
        | Transport::Refused
        | Transport::Unreachable
        | Transport::Tls
        | Transport::NotProcessed
        | Transport::Timeout(Clock::Connect) => (Class::Transient, Sent::Never),
        // A wrong name or a certificate nobody trusts is a wrong address, not a bad moment.
        Transport::TlsName | Transport::TlsTrust => (Class::Unknown, Sent::Never),
        Transport::ResetBeforeResponse
        | Transport::ClosedBeforeResponse
        | Transport::CutBody
        | Transport::Http => (Class::Transient, Sent::Maybe),
        // The answer arrived and breaks its own word.
        Transport::UnknownCoding | Transport::BrokenCoding => (Class::Malformed, Sent::Maybe),
        Transport::Timeout(_) => (Class::Timeout, Sent::Maybe),
        Transport::CallerGone => (Class::Cancelled, Sent::Maybe),
    };
    let kind = match (transport, evidence.in_stream) {
        (Transport::CutBody, true) => Some(Kind::IncompleteStream),
        (Transport::CutBody, false) => Some(Kind::TruncatedBody),
        (Transport::UnknownCoding, _) => Some(Kind::UnknownEncoding),
        (Transport::BrokenCoding, _) => Some(Kind::UnreadableAnswer),
        _ => None,
    };
    Verdict {
        class,
        kind,
        signal: Signal::Transport(transport),
        code: None,
        status: evidence.status,
        retry_after: None,
        should_retry: None,
        sent,
    }
}

/// A class with what decided it.
struct Finding {
    class: Class,
    kind: Option<Kind>,
    signal: Signal,
}

impl Finding {
    fn by_status(class: Class, status: u16) -> Self {
        Self {
            class,
            kind: None,
            signal: Signal::Status(status),
        }
    }
}

/// One answer, read and ready to be decided.
struct Case<'e> {
    facts: &'e Facts<'e>,
    /// The provider's codes, the most specific first: the exception named in `x-amzn-errortype`,
    /// then those of the body.
    codes: Vec<Told<'e>>,
    /// The status that speaks for the failure: the answer's own, or the body's inside a 2xx.
    status: Option<u16>,
    in_stream: bool,
    is_empty: bool,
    prose: Words,
    /// Openings that echo the request, the provider's table, the general one.
    tables: [Option<&'static Compiled>; 3],
}

/// How a rule was met, for the statuses that admit codes only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Code,
    Phrase,
}

impl<'e> Case<'e> {
    fn new(evidence: &Evidence<'e>, facts: &'e Facts<'e>) -> Self {
        let status = match evidence.status {
            Some(status) if status >= 300 => Some(status),
            _ => facts.number(),
        };
        let room = facts.messages().map(|message| message.len() + 16).sum();
        let mut prose = Prose::with_room(room);
        for message in facts.messages() {
            prose.push_message(message);
        }
        let exception = evidence
            .headers
            .and_then(|headers| headers.get("x-amzn-errortype")?.to_str().ok())
            .map(|name| (Field::Exception, name));
        let codes = exception.into_iter().chain(facts.codes());
        Self {
            facts,
            codes: codes.map(|(field, code)| Told::new(field, code)).collect(),
            status,
            in_stream: evidence.in_stream,
            is_empty: evidence.body.trim_ascii().is_empty(),
            prose: Words::new(prose, &tables::PHRASES),
            tables: tables::compiled(evidence.family),
        }
    }

    fn decide(&self) -> Finding {
        match self.status {
            Some(402) => return Finding::by_status(Class::Quota, 402),
            Some(status @ 300..=399) => {
                return Finding {
                    kind: Some(Kind::Redirect),
                    ..Finding::by_status(Class::Malformed, status)
                };
            }
            None if !self.facts.is_error && !self.in_stream => return self.no_failure(),
            _ => {}
        }
        self.by_code(false)
            .map(|finding| self.refine(finding))
            .or_else(|| self.by_field())
            .or_else(|| self.by_phrase())
            .or_else(|| self.by_code(true))
            .or_else(|| self.by_body_status())
            .unwrap_or_else(|| self.by_status())
    }

    /// A 2xx without any error in it: whoever handed it in found its shape wrong.
    fn no_failure(&self) -> Finding {
        Finding {
            class: Class::Malformed,
            kind: Some(if self.is_empty {
                Kind::EmptyAnswer
            } else {
                Kind::UnreadableAnswer
            }),
            signal: Signal::Shape,
        }
    }

    /// The first code that a table knows; `weak` asks for those that say no more than a status.
    fn by_code(&self, weak: bool) -> Option<Finding> {
        for told in &self.codes {
            for compiled in self.tables.into_iter().flatten() {
                let rules = compiled.table.codes;
                let fits = |i: usize| rules[i].weak == weak && self.fits(&rules[i], By::Code);
                if let Some(hit) = compiled.codes.first(&told.words, fits) {
                    let signal = told.signal();
                    return self.finding(&rules[hit.rule], By::Code, signal);
                }
            }
        }
        None
    }

    /// The first phrase that a table knows.
    fn by_phrase(&self) -> Option<Finding> {
        for compiled in self.tables.into_iter().flatten() {
            let rules = compiled.table.phrases;
            let fits = |i: usize| self.fits(&rules[i], By::Phrase);
            if let Some(hit) = compiled.phrases.first(&self.prose, fits) {
                let signal = Signal::Phrase(compiled.phrases.spelling(hit));
                let finding = self.finding(&rules[hit.rule], By::Phrase, signal)?;
                return Some(self.refine(finding));
            }
        }
        None
    }

    /// An error that names a field of the request, other than the model, is about that field.
    fn by_field(&self) -> Option<Finding> {
        let fault = Finding {
            class: Class::CallerFault,
            kind: None,
            signal: Signal::Param,
        };
        let refused = matches!(self.status, Some(400 | 404 | 409 | 413 | 422));
        if !refused {
            return None;
        }
        if self.facts.refuses_fields() {
            return Some(fault);
        }
        match self.facts.param()? {
            "model" => None,
            _ => Some(fault),
        }
    }

    /// A status number in the body that says more than the status of the answer.
    fn by_body_status(&self) -> Option<Finding> {
        let number = self
            .facts
            .number()
            .filter(|number| Some(*number) != self.status)?;
        let class = match number {
            402 => Class::Quota,
            429 => Class::RateLimit,
            500 | 502..=504 | 529 => Class::Transient,
            401 | 403 if self.facts.inner.is_none() => Class::Credential,
            _ => return None,
        };
        Some(Finding {
            class: self.admitted(class, None, By::Code)?,
            kind: None,
            signal: Signal::BodyStatus(number),
        })
    }

    fn by_status(&self) -> Finding {
        let Some(status) = self.status else {
            // An error event in a stream that had begun well: the provider broke off.
            let code = self.codes.first();
            return Finding {
                class: Class::Transient,
                kind: None,
                signal: code.map_or(Signal::Shape, Told::signal),
            };
        };
        let listed = self.tables.into_iter().flatten().find_map(|compiled| {
            let row = compiled
                .table
                .statuses
                .iter()
                .find(|(listed, _)| *listed == status)?;
            Some(row.1)
        });
        let class = listed.unwrap_or(match status {
            404 if self.facts.param() == Some("model") => Class::ModelAccess,
            400 | 409 | 412 | 413 | 415 | 422 if self.facts.is_error => Class::CallerFault,
            401 | 403 => Class::Credential,
            429 => Class::RateLimit,
            500..=599 => Class::Transient,
            _ => Class::Unknown,
        });
        Finding::by_status(class, status)
    }

    /// A code may leave open what the message says: a missing model that was retired, a limit
    /// that is the account's money.
    fn refine(&self, finding: Finding) -> Finding {
        let class = match finding.class {
            Class::ModelAccess => Class::ModelGone,
            Class::RateLimit if !self.is_server_error() => Class::Quota,
            _ => return finding,
        };
        match kinds::refinement(class, &self.prose) {
            Some(phrase) => Finding {
                class,
                kind: None,
                signal: Signal::Phrase(phrase),
            },
            None => finding,
        }
    }

    fn finding(&self, rule: &Rule, by: By, signal: Signal) -> Option<Finding> {
        Some(Finding {
            class: self.admitted(rule.class, rule.kind, by)?,
            kind: rule.kind,
            signal,
        })
    }

    fn fits(&self, rule: &Rule, by: By) -> bool {
        rule.when.holds(self.status) && self.admitted(rule.class, rule.kind, by).is_some()
    }

    /// The class that a rule's class becomes under this status, if the status admits it at all.
    fn admitted(&self, class: Class, kind: Option<Kind>, by: By) -> Option<Class> {
        use Class::{
            CallerFault, Credential, ModelAccess, ModelGone, Quota, RateLimit, RegionBlocked,
            Transient,
        };
        let admitted = match (self.status, class) {
            (_, Class::Unknown) => true,
            // The key is dead, whatever the message says; a code may give the better reason.
            (Some(401), Credential) => true,
            (Some(401), Quota | ModelAccess | ModelGone | RegionBlocked) => by == By::Code,
            (Some(401), _) => false,
            (Some(403), CallerFault) if kind == Some(Kind::ContentPolicy) => {
                return Some(Credential);
            }
            (Some(403), Credential | Quota | ModelAccess | ModelGone | RegionBlocked) => true,
            (Some(403), _) => false,
            (Some(429), Quota | RateLimit) => true,
            (Some(429), _) => false,
            // A 5xx is the provider's own trouble unless its body says that a limit was hit.
            (Some(500..=599), Transient | RateLimit) => true,
            (Some(500..=599), _) => false,
            _ => true,
        };
        admitted.then_some(class)
    }

    fn is_server_error(&self) -> bool {
        matches!(self.status, Some(500..=599))
    }

    /// A finer reading of the class, from any code or phrase.
    fn finer(&self, class: Class) -> Option<Kind> {
        if let Some(kind) = kinds::by_phrase(class, &self.prose) {
            return Some(kind);
        }
        if self.status == Some(529) {
            return Some(Kind::Overloaded);
        }
        let by_code = |told: &Told<'_>| kinds::by_code(class, &told.words);
        self.codes.iter().find_map(by_code)
    }

    /// The provider's most specific code that is safe to log.
    fn code(&self) -> Option<Code> {
        self.codes.iter().find_map(|told| Code::new(told.code))
    }

    /// The status number in the body, where it is all the code there is and the answer's own status
    /// says another.
    fn number_beside(&self, status: Option<u16>) -> Option<Code> {
        let number = self
            .facts
            .number()
            .filter(|number| Some(*number) != status)?;
        Code::new(&number.to_string())
    }
}

/// A code of the provider's, with the field it stood in.
struct Told<'e> {
    field: Field,
    code: &'e str,
    words: Words,
}

impl<'e> Told<'e> {
    fn new(field: Field, code: &'e str) -> Self {
        let code = if field == Field::Exception {
            bare_exception(code)
        } else {
            code
        };
        let mut words = Prose::with_room(2 * code.len());
        words.push_code(code);
        let words = Words::new(words, &tables::CODES);
        Self { field, code, words }
    }

    fn signal(&self) -> Signal {
        Signal::Code {
            field: self.field,
            code: Code::new(self.code),
        }
    }
}

/// `Name:http://...` in a header, `com.amazon#Name` in a body: the name alone.
fn bare_exception(name: &str) -> &str {
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    name.rsplit_once('#').map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests;
