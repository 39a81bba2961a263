//! What a running gateway says of its channels, read from its page of metrics.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Error;

/// How long the gateway may take. Our choice: a page comes in milliseconds, and someone waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// The largest page that is read. Our choice: 2,000 channels make about 1 MiB.
const LARGEST: u64 = 16 * 1024 * 1024;

/// What is known of the present.
#[derive(Debug)]
pub(super) enum Live {
    /// Nobody was asked.
    NotAsked,
    /// The gateway at this address did not answer.
    Silent(String),
    /// It did.
    Answered(String, Page),
}

/// What its page says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Page {
    /// Channels by id.
    pub(super) channels: HashMap<String, Channel>,
    /// The keys that are held out.
    pub(super) held: Vec<Held>,
}

/// A key that is held out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Held {
    pub(super) provider: String,
    pub(super) key: String,
    /// `*` for all of them.
    pub(super) model: String,
}

impl Page {
    /// Whether the key is held out for this model.
    pub(super) fn holds(&self, provider: &str, key: &str, model: &str) -> bool {
        self.held.iter().any(|held| {
            held.provider == provider
                && held.key == key
                && (held.model == "*" || held.model == model)
        })
    }
}

/// What a gateway says of one channel.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Channel {
    /// `closed`, `half_open` or `open`.
    pub(super) breaker: Option<String>,
    /// Retries that its budget still allows.
    pub(super) retries_left: Option<f64>,
}

/// Asks the gateway at `url`, which is given back as it was understood.
pub(super) fn ask(url: &str) -> Result<(String, io::Result<Page>), Error> {
    let bad = || Error::BadAddress {
        url: url.to_owned(),
    };
    let rest = url.strip_prefix("http://").ok_or_else(bad)?;
    let (authority, path) = match rest.split_once('/') {
        None | Some((_, "")) => (rest.trim_end_matches('/'), "/metrics".to_owned()),
        Some((authority, path)) => (authority, format!("/{path}")),
    };
    let plain = |c: char| c.is_ascii_graphic() && c != '@';
    if authority.is_empty() || !rest.chars().all(plain) {
        return Err(bad());
    }
    let port = authority.rsplit(']').next().unwrap_or(authority);
    let address = if port.contains(':') {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    let understood = format!("http://{authority}{path}");
    Ok((understood, fetch(&address, authority, &path)))
}

fn fetch(address: &str, host: &str, path: &str) -> io::Result<Page> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let answer = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, async {
            let mut stream = TcpStream::connect(address).await?;
            // HTTP/1.0: the answer is neither chunked nor followed by another.
            let request = format!("GET {path} HTTP/1.0\r\nhost: {host}\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = Vec::new();
            stream.take(LARGEST).read_to_end(&mut answer).await?;
            Ok::<_, io::Error>(answer)
        })
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no answer within 5 s"))?
    })?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| io::Error::other("the answer is no HTTP"))?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status != "200" {
        return Err(io::Error::other(format!("it answered {status}")));
    }
    Ok(read(body))
}

/// Reads the gauges that are about channels and their keys; everything else on the page is passed over.
pub(super) fn read(page: &str) -> Page {
    let mut read = Page::default();
    for line in page.lines() {
        let Some((name, rest)) = line.split_once('{') else {
            continue;
        };
        let Some((labels, value)) = rest.rsplit_once("} ") else {
            continue;
        };
        let Ok(value) = value.trim().parse::<f64>() else {
            continue;
        };
        if name == "backstop_keys_held" && value > 0.0 {
            let named = |name| label(labels, name);
            if let (Some(provider), Some(key), Some(model)) =
                (named("provider"), named("key"), named("model"))
            {
                read.held.push(Held {
                    provider,
                    key,
                    model,
                });
            }
            continue;
        }
        let Some(id) = label(labels, "channel") else {
            continue;
        };
        let channels = &mut read.channels;
        match name {
            "backstop_breaker_state" if value > 0.0 => {
                channels.entry(id).or_default().breaker = label(labels, "state");
            }
            "backstop_retry_budget_left_retries" => {
                channels.entry(id).or_default().retries_left = Some(value);
            }
            _ => {}
        }
    }
    read
}

/// The value of one label, its escapes undone.
fn label(labels: &str, name: &str) -> Option<String> {
    let start = labels
        .match_indices(name)
        .map(|(at, _)| &labels[at + name.len()..]);
    let mut value = start
        .filter_map(|rest| rest.strip_prefix("=\""))
        .next()?
        .chars();
    let mut text = String::new();
    loop {
        match value.next()? {
            '"' => return Some(text),
            '\\' => match value.next()? {
                'n' => text.push('\n'),
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
}
