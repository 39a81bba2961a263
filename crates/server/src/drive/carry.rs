//! What is sent and answered, across dialects and by what is asked for.

use backstop_dialects::{
    AnswerFacts, Dialect, Malformed, Operation, Stamp, Written, carry_count, inspect_answer,
    inspect_count, inspect_vectors, read_answer, read_count_request, read_embed_request,
    read_request, read_vectors, write_answer, write_count_request, write_embed_request,
    write_request, write_vectors,
};
use backstop_policy::Channel;
use backstop_providers::Provider;
use backstop_units::ModelName;

use super::Request;

impl Request {
    /// The caller's request in the dialect `to`, for `model` as the provider names it. The error
    /// names the field that stands in the way.
    pub(super) fn carry(
        &self,
        to: Dialect,
        model: &ModelName,
        provider: &Provider,
    ) -> Result<Written, String> {
        let (from, model) = (self.dialect, model.as_str().to_owned());
        let options = self.write_options(provider);
        let written = match self.operation {
            Operation::Generate => {
                let mut neutral = read_request(from, &self.body).map_err(|bad| bad.to_string())?;
                neutral.model = model;
                // Where they stand in the path, the body does not say.
                neutral.stream = self.envelope.stream;
                neutral.include_usage = self.envelope.stream;
                write_request(to, &neutral, &options)
            }
            Operation::Embed => {
                let mut neutral =
                    read_embed_request(from, &self.body).map_err(|bad| bad.to_string())?;
                neutral.model = model;
                write_embed_request(to, &neutral, options.loss)
            }
            Operation::CountTokens => {
                let mut neutral =
                    read_count_request(from, &self.body).map_err(|bad| bad.to_string())?;
                neutral.model = model;
                write_count_request(to, &neutral, options.loss)
            }
        };
        written.map_err(|unsupported| unsupported.field)
    }

    /// Checks an answer that came in the dialect `from`, and finds what is noted of it.
    pub(super) fn inspect(
        &self,
        from: Dialect,
        channel: &Channel,
        body: &[u8],
    ) -> Result<AnswerFacts, Malformed> {
        match self.operation {
            Operation::Generate => inspect_answer(from, body),
            Operation::Embed => inspect_vectors(from, &channel.model, self.envelope.vectors, body),
            Operation::CountTokens => inspect_count(from, body),
        }
    }

    /// An answer that came in the dialect `from`, in the caller's.
    pub(super) fn carry_back(
        &self,
        from: Dialect,
        channel: &Channel,
        body: &[u8],
        stamp: &Stamp<'_>,
    ) -> Result<Vec<u8>, Malformed> {
        let to = self.dialect;
        match self.operation {
            Operation::Generate => {
                let answer = read_answer(from, body)?;
                Ok(write_answer(to, &answer, stamp).body)
            }
            Operation::Embed => {
                let answer = read_vectors(from, &channel.model, body)?;
                write_vectors(to, &answer, self.envelope.vectors, stamp)
            }
            Operation::CountTokens => carry_count(from, to, body),
        }
    }
}
