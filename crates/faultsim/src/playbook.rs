//! Which step an attempt takes: the first that is not used up and whose conditions it meets.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;

use crate::script::{On, Otherwise, Repeat, Script, Step, When};

/// What is known about an attempt when its step is chosen.
pub(crate) struct Facts<'a> {
    pub(crate) presented: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) path: &'a str,
    pub(crate) stream: bool,
    /// Its place among all attempts, from 1.
    pub(crate) attempt: u64,
    /// Its place among those with the same key, from 1.
    pub(crate) key_attempt: u64,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    pub(crate) since_start: Duration,
    pub(crate) reused: bool,
}

/// A script and what has been used of it.
pub(crate) struct Playbook {
    script: Script,
    steps: Vec<(Arc<Step>, u32)>,
}

impl Playbook {
    pub(crate) fn new(mut script: Script) -> Self {
        let steps = script
            .steps
            .drain(..)
            .map(|step| (Arc::new(step), 0))
            .collect();
        Self { script, steps }
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push((Arc::new(step), 0));
    }

    /// Everything about the script but its steps.
    pub(crate) const fn script(&self) -> &Script {
        &self.script
    }

    pub(crate) fn is_healthy_otherwise(&self) -> bool {
        self.script.otherwise == Otherwise::Healthy
    }

    /// Takes the step for an attempt; its index counts from 0.
    pub(crate) fn choose(&mut self, facts: &Facts<'_>) -> Option<(usize, Arc<Step>)> {
        let script = &self.script;
        let (index, (step, used)) = self
            .steps
            .iter_mut()
            .enumerate()
            .find(|(_, (step, used))| step.repeat.allows(*used) && meets(script, step, facts))?;
        *used = used.saturating_add(1);
        Some((index, Arc::clone(step)))
    }

    /// Steps not used up, as index and how often each is still due.
    pub(crate) fn left_over(&self) -> Vec<(usize, u32)> {
        let due = self
            .steps
            .iter()
            .enumerate()
            .map(|(index, (step, used))| match step.repeat {
                Repeat::Times(times) => (index, times.saturating_sub(*used)),
                Repeat::Always => (index, 0),
            });
        due.filter(|(_, due)| *due > 0).collect()
    }
}

impl Repeat {
    const fn allows(self, used: u32) -> bool {
        match self {
            Self::Times(times) => used < times,
            Self::Always => true,
        }
    }
}

fn meets(script: &Script, step: &Step, facts: &Facts<'_>) -> bool {
    let key = step.key.as_deref().is_none_or(|key| {
        facts.presented.is_some_and(|presented| {
            match script.keys.iter().find(|(label, _)| label == key) {
                Some((_, secret)) => secret.is(presented),
                None => key == presented,
            }
        })
    });
    let connection = step.on.is_none_or(|on| (on == On::Reused) == facts.reused);
    key && connection && step.when.holds(facts)
}

impl When {
    fn holds(&self, facts: &Facts<'_>) -> bool {
        let model = self
            .model
            .as_deref()
            .is_none_or(|model| facts.model == Some(model));
        let path = self
            .path
            .as_deref()
            .is_none_or(|path| facts.path.ends_with(path));
        let stream = self.stream.is_none_or(|stream| facts.stream == stream);
        let attempt = self.attempt.is_none_or(|count| count.holds(facts.attempt));
        let by_key = self
            .key_attempt
            .is_none_or(|count| count.holds(facts.key_attempt));
        let header = self.header.iter().all(|(name, value)| {
            facts
                .headers
                .get_all(name)
                .iter()
                .any(|have| have.as_bytes() == value.as_bytes())
        });
        let body = self
            .body_contains
            .as_deref()
            .is_none_or(|text| contains(facts.body, text));
        let after = self
            .after_ms
            .is_none_or(|ms| facts.since_start >= Duration::from_millis(ms));
        let before = self
            .before_ms
            .is_none_or(|ms| facts.since_start < Duration::from_millis(ms));
        model && path && stream && attempt && by_key && header && body && after && before
    }
}

fn contains(body: &[u8], text: &str) -> bool {
    text.is_empty()
        || body
            .windows(text.len())
            .any(|window| window == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Count;

    fn facts<'a>(headers: &'a HeaderMap) -> Facts<'a> {
        Facts {
            presented: Some("sk-1"),
            model: Some("m"),
            path: "/v1/chat/completions",
            stream: true,
            attempt: 3,
            key_attempt: 2,
            headers,
            body: br#"{"model":"m"}"#,
            since_start: Duration::from_millis(500),
            reused: false,
        }
    }

    #[test]
    fn a_step_is_taken_when_all_its_conditions_hold() {
        let step = || Step::ok_text("x");
        let when = |when: When| Step::ok_text("x").when(when);
        let count = |from, to| Some(Count { from, to });
        let rows: [(&str, Step, bool); 20] = [
            ("none", step(), true),
            ("label", step().key("k1"), true),
            ("other label", step().key("k2"), false),
            ("secret", step().key("sk-1"), true),
            ("model", step().model("m"), true),
            ("other model", step().model("n"), false),
            ("third", step().nth(3), true),
            ("second", step().nth(2), false),
            ("fresh", step().on(On::Fresh), true),
            ("reused", step().on(On::Reused), false),
            (
                "key count",
                when(When {
                    key_attempt: count(2, None),
                    ..When::default()
                }),
                true,
            ),
            (
                "key count",
                when(When {
                    key_attempt: count(3, None),
                    ..When::default()
                }),
                false,
            ),
            (
                "range",
                when(When {
                    attempt: count(0, Some(2)),
                    ..When::default()
                }),
                false,
            ),
            (
                "path",
                when(When {
                    path: Some("/completions".into()),
                    ..When::default()
                }),
                true,
            ),
            (
                "stream",
                when(When {
                    stream: Some(false),
                    ..When::default()
                }),
                false,
            ),
            (
                "header",
                when(When {
                    header: vec![("X-A".into(), "1".into())],
                    ..When::default()
                }),
                true,
            ),
            (
                "header",
                when(When {
                    header: vec![("x-a".into(), "2".into())],
                    ..When::default()
                }),
                false,
            ),
            (
                "body",
                when(When {
                    body_contains: Some("\"m\"".into()),
                    ..When::default()
                }),
                true,
            ),
            (
                "after",
                when(When {
                    after_ms: Some(501),
                    ..When::default()
                }),
                false,
            ),
            (
                "before",
                when(When {
                    before_ms: Some(501),
                    ..When::default()
                }),
                true,
            ),
        ];
        let mut headers = HeaderMap::new();
        headers.insert("x-a", "1".parse().unwrap());
        for (name, step, want) in rows {
            let script = Script::new().key("k1", "sk-1").key("k2", "sk-2").step(step);
            let taken = Playbook::new(script).choose(&facts(&headers));
            assert_eq!(taken.is_some(), want, "{name}");
        }
    }

    #[test]
    fn steps_are_used_up_in_order_and_the_rest_is_left_over() {
        let script = Script::new()
            .step(Step::ok_text("a").repeat(2))
            .step(Step::ok_text("b").key("k9"))
            .step(Step::ok_text("c"))
            .step(Step::ok_text("d").always());
        let mut book = Playbook::new(script);
        let headers = HeaderMap::new();
        let mut taken = Vec::new();
        for _ in 0..5 {
            taken.push(book.choose(&facts(&headers)).map(|(index, _)| index));
        }
        assert_eq!(taken, [Some(0), Some(0), Some(2), Some(3), Some(3)]);
        assert_eq!(book.left_over(), [(1, 1)]);
    }
}
