//! What a model answered, whole.

use serde::Serialize;

use crate::content::{Json, Part, Text};
use crate::event::Event;
use crate::usage::Usage;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Answer {
    /// The provider's id for it; empty when it gave none.
    pub id: String,
    /// The model as the provider reports it; empty when it does not.
    pub model: String,
    /// When it was made, in seconds since 1970, where the dialect says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// The answers, one unless `n` asked for more.
    pub choices: Vec<Choice>,
    /// Tokens spent, when reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Answer {
    /// An answer of plain words, complete in itself.
    #[must_use]
    pub fn text(words: impl Into<Text>) -> Self {
        Self {
            choices: vec![Choice {
                index: 0,
                parts: vec![Part::Text(words.into())],
                stop: Some(StopReason::EndTurn),
                stop_sequence: None,
                logprobs: None,
            }],
            ..Self::default()
        }
    }

    /// The same answer as a stream, each piece in one step. Pictures, tool results and pieces that
    /// only one dialect knows have no place in a stream and are left out.
    #[must_use]
    pub fn steps(&self) -> Vec<Event> {
        let mut steps = vec![Event::Start {
            id: self.id.clone(),
            model: self.model.clone(),
            created: self.created,
        }];
        for choice in &self.choices {
            choice.steps(&mut steps);
        }
        steps.extend(self.usage.map(Event::Usage));
        steps.push(Event::End);
        steps
    }
}

impl Choice {
    fn steps(&self, steps: &mut Vec<Event>) {
        let choice = self.index;
        let some = |text: &Text| (!text.is_empty()).then(|| text.clone());
        let mut tool = 0;
        for part in &self.parts {
            match part {
                Part::Text(text) => {
                    steps.extend(some(text).map(|text| Event::Text { choice, text }));
                }
                Part::Refusal(text) => {
                    steps.extend(some(text).map(|text| Event::Refusal { choice, text }));
                }
                Part::Reasoning { text, signature } => {
                    steps.extend(some(text).map(|text| Event::Reasoning { choice, text }));
                    steps.extend(
                        signature
                            .clone()
                            .map(|signature| Event::ReasoningSignature { choice, signature }),
                    );
                }
                Part::RedactedReasoning(data) => {
                    let data = data.clone();
                    steps.push(Event::RedactedReasoning { choice, data });
                }
                Part::ToolCall {
                    id,
                    name,
                    arguments,
                } => {
                    let (id, name) = (id.clone(), name.clone());
                    steps.push(Event::ToolStart {
                        choice,
                        tool,
                        id,
                        name,
                    });
                    steps.extend(some(arguments).map(|arguments| Event::ToolArguments {
                        choice,
                        tool,
                        arguments,
                    }));
                    tool += 1;
                }
                Part::Image(_) | Part::ToolResult { .. } | Part::Other { .. } => {}
            }
        }
        if let Some(reason) = self.stop.clone() {
            let stop_sequence = self.stop_sequence.clone();
            steps.push(Event::Stop {
                choice,
                reason,
                stop_sequence,
            });
        }
    }
}

/// One of the answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Its place among the answers.
    pub index: u32,
    /// What was said, in order.
    pub parts: Vec<Part>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    /// The stop string that was hit, where the dialect says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_sequence: Option<Text>,
    /// Token probabilities as written; only dialects that share the shape can pass them on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Json>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was complete.
    EndTurn,
    /// A stop string was hit.
    StopSequence,
    /// The limit on generated tokens was reached.
    MaxTokens,
    /// The context window was full.
    ContextWindow,
    /// The model waits for tool results.
    ToolUse,
    /// Withheld or declined for its content.
    ContentFilter,
    /// The provider paused a long turn; the caller may resume it.
    Pause,
    /// A reason this table does not know, as written.
    Other(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_to_a_stream_of_its_pieces() {
        let mut answer = Answer::text("hello");
        let parts = &mut answer.choices[0].parts;
        parts.push(Part::Text(String::new().into()));
        for id in ["a", "b"] {
            parts.push(Part::ToolCall {
                id: id.to_owned(),
                name: "look".to_owned(),
                arguments: "{}".into(),
            });
        }
        let steps = answer.steps();
        let tools = steps.iter().filter_map(|step| match step {
            Event::ToolStart { tool, id, .. } => Some((*tool, id.as_str())),
            _ => None,
        });
        assert!(tools.eq([(0, "a"), (1, "b")]));
        let words = steps
            .iter()
            .filter(|step| matches!(step, Event::Text { .. }));
        assert_eq!(words.count(), 1, "no empty words");
        assert!(matches!(steps.first(), Some(Event::Start { .. })));
        assert!(matches!(
            &steps[steps.len() - 2..],
            [
                Event::Stop {
                    reason: StopReason::EndTurn,
                    ..
                },
                Event::End
            ]
        ));
    }
}
