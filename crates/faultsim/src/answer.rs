//! From a step, or from good health, to the answer that is written.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::asked::{Asked, Dialect};
use crate::completion::{Completion, Said, sample};
use crate::encode::Encoder;
use crate::fault::Fault;
use crate::healthy;
use crate::script::{Coding, Content, End, Fill, Item, Media, Reply, Status, Step};

/// The status of an attempt that found no step. No provider uses it.
pub(crate) const UNEXPECTED: u16 = 599;

/// What goes on the wire for one attempt.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    /// `None`: no response at all.
    pub(crate) status: Option<u16>,
    pub(crate) headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(crate) body: Body<'a>,
    /// What the items of a stream are coded in, each as it is sent.
    pub(crate) coding: Option<Coding>,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Body<'a> {
    Whole(Bytes),
    Items(Cow<'a, [Item]>),
}

/// The request an answer is for.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) asked: &'a Asked,
    pub(crate) body: &'a [u8],
    pub(crate) seq: u64,
    pub(crate) fill: Fill<'a>,
}

impl<'a> Request<'a> {
    fn dialect(&self) -> Dialect {
        Dialect::of(self.path)
    }

    fn completion<'s>(&'s self, said: Said<'s>) -> Completion<'s> {
        Completion {
            dialect: self.dialect(),
            asked: self.asked,
            seq: self.seq,
            prompt_bytes: self.body.len(),
            said,
        }
    }

    /// The answer a step scripts.
    pub(crate) fn scripted(&self, step: &'a Step) -> Answer<'a> {
        let mut answer = match &step.content {
            Content::Empty => Answer::new(200, Body::Whole(Bytes::new())),
            Content::Json(body) => self.json(200, body),
            Content::Text(text) => {
                let text = self.fill.apply(text, false).into_owned();
                let media = if text.trim_start().starts_with('<') {
                    "text/html; charset=utf-8"
                } else {
                    "text/plain; charset=utf-8"
                };
                Answer::new(200, Body::Whole(text.into())).with("content-type", media)
            }
            Content::Stream(media, items) => Answer::stream(*media, Cow::Borrowed(items)),
            Content::Reply(reply) => self.reply(reply, step.then),
        };
        match step.status {
            Status::Usual => {}
            Status::Code(code) => answer.status = Some(code),
            Status::Silent => answer.status = None,
        }
        if let Some(coding) = step.coding {
            answer = answer.coded(coding);
        }
        for (name, value) in &step.headers {
            answer
                .headers
                .retain(|(own, _)| !own.eq_ignore_ascii_case(name));
            answer
                .headers
                .push((Cow::Borrowed(name), self.fill.apply(value, false)));
        }
        answer
    }

    fn reply(&self, reply: &Reply, then: End) -> Answer<'a> {
        let asked = self.asked.stream;
        match reply {
            Reply::Fault(fault) => self.fault(*fault),
            Reply::ToolCall { name, arguments } => {
                self.said(Said::Call { name, arguments }, asked, then)
            }
            Reply::Text {
                pieces,
                streamed,
                gap,
                fault,
            } => {
                let said = Said::Text(pieces);
                if streamed.unwrap_or(asked) {
                    let items = self
                        .completion(said)
                        .stream(*gap, then == End::Close, *fault);
                    self.identified(Answer::stream(self.media(), Cow::Owned(items)))
                } else {
                    self.said(said, false, then)
                }
            }
        }
    }

    fn said(&self, said: Said<'_>, streamed: bool, then: End) -> Answer<'a> {
        let completion = self.completion(said);
        self.identified(if streamed {
            let items = completion.stream(std::time::Duration::ZERO, then == End::Close, None);
            Answer::stream(self.media(), Cow::Owned(items))
        } else {
            Answer::json(200, &completion.whole())
        })
    }

    fn fault(&self, fault: Fault) -> Answer<'a> {
        let dialect = self.dialect();
        let body = fault.body(dialect, self.fill.model);
        let answer = self.identified(Answer::json(fault.status(dialect), &body));
        match dialect {
            Dialect::Bedrock => answer.with("x-amzn-errortype", fault.exception()),
            _ => answer,
        }
    }

    /// What its streams are made of.
    fn media(&self) -> Media {
        match self.dialect() {
            Dialect::Bedrock => Media::Frames,
            _ => Media::Events,
        }
    }

    fn json(&self, status: u16, body: &Value) -> Answer<'a> {
        let text = body.to_string();
        let text = self.fill.apply(&text, true).into_owned();
        Answer::new(status, Body::Whole(text.into())).with("content-type", "application/json")
    }

    fn identified(&self, answer: Answer<'a>) -> Answer<'a> {
        let name = match self.dialect() {
            Dialect::OpenAi => "x-request-id",
            Dialect::Anthropic => "request-id",
            Dialect::Bedrock => "x-amzn-requestid",
        };
        answer.with(name, format!("req_sim{:06}", self.seq))
    }

    /// The answer of a provider in good health.
    pub(crate) fn healthy(&self) -> Answer<'a> {
        let path = self.path.trim_end_matches('/');
        if self.method == "GET" && path.ends_with("/models") {
            let models = ["sim-large", "sim-small"].map(
                |id| json!({"id": id, "object": "model", "created": 0, "owned_by": "faultsim"}),
            );
            return self.identified(Answer::json(
                200,
                &json!({"object": "list", "data": models}),
            ));
        }
        if self.method == "POST"
            && let Some(body) = healthy::answer(path, self.body, self.fill.model)
        {
            return self.identified(Answer::json(200, &body));
        }
        let known = [
            "/chat/completions",
            "/messages",
            "/converse",
            "/converse-stream",
        ]
        .iter()
        .any(|end| path.ends_with(end));
        if self.method != "POST" || !known {
            return self.refused(
                404,
                &format!("no such route: {} {}", self.method, self.path),
            );
        }
        if !self.asked.is_json {
            return self.refused(400, "the body is not JSON");
        }
        let Some(model) = &self.asked.model else {
            return self.refused(400, "`model` is missing");
        };
        if let Some(tool) = self.asked.tool.as_ref().filter(|_| self.asked.wants_call) {
            let said = Said::Call {
                name: &tool.name,
                arguments: &sample(&tool.schema),
            };
            return self.said(said, self.asked.stream, End::Close);
        }
        let pieces = [
            "Hello",
            " from",
            " the",
            " simulated",
            &format!(" {model}."),
            " All is well.",
        ]
        .map(str::to_owned);
        self.said(Said::Text(&pieces), self.asked.stream, End::Close)
    }

    /// The answer to an attempt that found no step.
    pub(crate) fn unexpected(&self) -> Answer<'a> {
        self.refused(
            UNEXPECTED,
            "faultsim: no step of the script is left for this attempt",
        )
    }

    fn refused(&self, status: u16, message: &str) -> Answer<'a> {
        let mut body = Fault::InvalidRequest.body(self.dialect(), "");
        if self.dialect() == Dialect::Bedrock {
            body["message"] = Value::from(message);
        } else {
            body["error"]["message"] = Value::from(message);
        }
        self.identified(Answer::json(status, &body))
    }
}

impl<'a> Answer<'a> {
    fn new(status: u16, body: Body<'a>) -> Self {
        Self {
            status: Some(status),
            headers: Vec::new(),
            body,
            coding: None,
        }
    }

    fn json(status: u16, body: &Value) -> Self {
        Self::new(status, Body::Whole(body.to_string().into()))
            .with("content-type", "application/json")
    }

    fn stream(media: Media, items: Cow<'a, [Item]>) -> Self {
        let answer = Self::new(200, Body::Items(items));
        match media {
            Media::Events => answer
                .with("content-type", "text/event-stream; charset=utf-8")
                .with("cache-control", "no-cache"),
            Media::Frames => answer.with("content-type", "application/vnd.amazon.eventstream"),
        }
    }

    fn coded(mut self, coding: Coding) -> Self {
        match &mut self.body {
            Body::Whole(bytes) => {
                let mut encoder = Encoder::new(coding);
                let mut coded = encoder.piece(bytes).to_vec();
                coded.extend_from_slice(&encoder.end());
                *bytes = coded.into();
            }
            Body::Items(_) => self.coding = Some(coding),
        }
        self.with("content-encoding", coding.name())
    }

    fn with(mut self, name: &'static str, value: impl Into<Cow<'a, str>>) -> Self {
        self.headers.push((Cow::Borrowed(name), value.into()));
        self
    }
}
