//! Google's Vertex AI: Google's own models, and Anthropic's.
//!
//! Docs: <https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference> and
//! <https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai>, notes of 2026-11.
//! Quirks:
//! - Project and location stand in the path, the location in the host as well; `global` has a host
//!   without one.
//! - The publisher of a model decides the wire shape: Google's speak Gemini's, Anthropic's their own.
//! - A Claude body holds no `model` and says `anthropic_version` where a header does elsewhere.
//! - Keys are short-lived access tokens, had with a service account or a person's credentials.

use backstop_classifier::Family;
use backstop_dialects::{Dialect, add_member, remove_member};
use backstop_units::ModelName;
use bytes::Bytes;
use http::HeaderName;

use crate::adapter::{Adapter, Signature};
use crate::gemini::encode;
use crate::setting::said;
use crate::{Call, KeyForm, Needed, Provider, Setting, When};

/// What a Claude body says in place of the header `anthropic-version`; the only version there is.
const CLAUDE_VERSION: &[u8] = br#""vertex-2023-10-16""#;

static BETA: [HeaderName; 1] = [HeaderName::from_static("anthropic-beta")];
static NEEDS: [Needed; 2] = [
    Needed {
        setting: Setting::Project,
        variables: &["GOOGLE_CLOUD_PROJECT"],
        when: When::Always,
    },
    Needed {
        setting: Setting::Location,
        variables: &["GOOGLE_CLOUD_LOCATION"],
        when: When::Always,
    },
];

/// Vertex AI.
#[derive(Debug)]
pub(crate) struct Vertex;

/// What a model's name stands for.
struct Resource<'a> {
    /// Its publisher; `None` for an endpoint of the operator's own.
    publisher: Option<&'a str>,
    name: &'a str,
}

impl<'a> Resource<'a> {
    /// Reads `publishers/<publisher>/models/<name>`, `endpoints/<id>` (a tuned model), `google/<name>`,
    /// `anthropic/<name>`, or a name alone, which is Anthropic's when it begins with `claude`.
    fn of(model: &'a str) -> Self {
        let published = |publisher, name| Self {
            publisher: Some(publisher),
            name,
        };
        if let Some(name) = model.strip_prefix("endpoints/") {
            return Self {
                publisher: None,
                name,
            };
        }
        if let Some(rest) = model.strip_prefix("publishers/")
            && let Some((publisher, name)) = rest.split_once("/models/")
        {
            return published(publisher, name);
        }
        match model.split_once('/') {
            Some((publisher @ ("google" | "anthropic"), name)) => published(publisher, name),
            _ if model.starts_with("claude") => published("anthropic", model),
            _ => published("google", model),
        }
    }

    fn is_anthropics(&self) -> bool {
        self.publisher == Some("anthropic")
    }
}

impl Adapter for Vertex {
    fn dialect(&self) -> Dialect {
        Dialect::Gemini
    }

    fn dialect_of(&self, model: &ModelName) -> Dialect {
        if Resource::of(model.as_str()).is_anthropics() {
            Dialect::AnthropicMessages
        } else {
            Dialect::Gemini
        }
    }

    fn family(&self) -> Family {
        Family::Vertex
    }

    fn path(&self) -> &'static str {
        "/projects"
    }

    fn call_path(&self, provider: &Provider, call: &Call<'_>) -> Option<String> {
        let resource = Resource::of(call.model.as_str());
        let project = provider.setting(Setting::Project)?;
        let location = provider.setting(Setting::Location)?;
        let mut path = format!("/projects/{project}/locations/{location}/");
        match resource.publisher {
            Some(publisher) => {
                path.push_str("publishers/");
                encode(publisher, &mut path);
                path.push_str("/models/");
            }
            None => path.push_str("endpoints/"),
        }
        encode(resource.name, &mut path);
        path.push_str(match (resource.is_anthropics(), call.stream) {
            (true, false) => ":rawPredict",
            (true, true) => ":streamRawPredict",
            (false, false) => ":generateContent",
            (false, true) => ":streamGenerateContent?alt=sse",
        });
        Some(path)
    }

    fn body(&self, call: &Call<'_>) -> Bytes {
        if !Resource::of(call.model.as_str()).is_anthropics() {
            return call.body.clone();
        }
        let spliced = remove_member(&call.body, "model")
            .and_then(|body| add_member(&body, "anthropic_version", CLAUDE_VERSION));
        // A body that is no object is the provider's to refuse.
        spliced.map_or_else(|| call.body.clone(), Bytes::from)
    }

    fn needs(&self) -> &'static [Needed] {
        &NEEDS
    }

    fn base_url(&self, settings: &[(Setting, String)]) -> Option<String> {
        Some(match said(settings, Setting::Location)? {
            "global" => "https://aiplatform.googleapis.com/v1".to_owned(),
            location => format!("https://{location}-aiplatform.googleapis.com/v1"),
        })
    }

    fn key_forms(&self) -> &'static [KeyForm] {
        &[KeyForm::ServiceAccount, KeyForm::Value]
    }

    fn signature(&self) -> Signature {
        Signature::Token
    }

    fn forwards(&self) -> &'static [HeaderName] {
        &BETA
    }

    fn joins(&self) -> &'static [HeaderName] {
        &BETA
    }
}

#[cfg(test)]
mod tests {
    use backstop_units::{ProviderId, RequestId, Secret};

    use super::*;
    use crate::{Address, row};

    fn vertex(location: &str) -> Provider {
        let settings = vec![
            (Setting::Project, "p-1".to_owned()),
            (Setting::Location, location.to_owned()),
        ];
        let address = Vertex.base_url(&settings).expect("a location is said");
        let address = Address::parse(&address).expect("an address");
        let row = row("vertex").expect("a known row");
        Provider::at(ProviderId::new("vertex"), row, address)
            .expect("a whole address")
            .with_settings(settings)
            .expect("a whole address")
    }

    #[test]
    fn publisher_method_and_location_stand_in_the_address() {
        use Dialect::{AnthropicMessages, Gemini};
        let regional = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/";
        let global = "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/";
        for (location, model, stream, dialect, beginning, rest) in [
            (
                "europe-west4",
                "gemini-2.5-flash",
                false,
                Gemini,
                regional,
                "publishers/google/models/gemini-2.5-flash:generateContent",
            ),
            (
                "global",
                "google/gemini-2.5-flash",
                true,
                Gemini,
                global,
                "publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            ),
            (
                "europe-west4",
                "claude-sonnet-4-5@20250929",
                false,
                AnthropicMessages,
                regional,
                "publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict",
            ),
            (
                "global",
                "anthropic/next-model",
                true,
                AnthropicMessages,
                global,
                "publishers/anthropic/models/next-model:streamRawPredict",
            ),
            (
                "global",
                "publishers/anthropic/models/claude-x",
                false,
                AnthropicMessages,
                global,
                "publishers/anthropic/models/claude-x:rawPredict",
            ),
            (
                "global",
                "endpoints/1234",
                false,
                Gemini,
                global,
                "endpoints/1234:generateContent",
            ),
            (
                "global",
                "odd?m#x",
                false,
                Gemini,
                global,
                "publishers/google/models/odd%3Fm%23x:generateContent",
            ),
        ] {
            let provider = vertex(location);
            let (model, id, key) = (ModelName::new(model), RequestId::new("r"), Secret::new("t"));
            let call = Call {
                stream,
                key: Some(&key),
                ..Call::new(&model, Bytes::from_static(b"{}"), &id)
            };
            let request = provider.build(&call).expect("a request");
            assert_eq!(request.uri().to_string(), format!("{beginning}{rest}"));
            assert_eq!(request.headers()["authorization"], "Bearer t");
            assert_eq!(provider.dialect_for(Dialect::OpenAiChat, &model), dialect);
        }
    }

    #[test]
    fn a_claude_body_says_its_version_and_no_model() {
        let (claude, gemini) = (ModelName::new("claude-x"), ModelName::new("gemini-x"));
        let id = RequestId::new("r");
        let body = |model, body: &'static str| {
            let call = Call::new(model, Bytes::from_static(body.as_bytes()), &id);
            String::from_utf8(Vertex.body(&call).to_vec()).expect("text")
        };
        let version = r#""anthropic_version":"vertex-2023-10-16""#;
        for (sent, want) in [
            (
                r#"{"model":"m", "max_tokens":1.50 ,"stream":true}"#,
                format!(r#"{{"max_tokens":1.50 ,"stream":true,{version}}}"#),
            ),
            (
                r#"{"anthropic_version":"x","model":"m"}"#,
                format!(r#"{{{version}}}"#),
            ),
            ("[]", "[]".to_owned()),
        ] {
            assert_eq!(body(&claude, sent), want);
            assert_eq!(body(&gemini, sent), sent);
        }
    }
}
