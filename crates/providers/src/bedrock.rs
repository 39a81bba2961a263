//! Amazon Bedrock.
//!
//! Docs: <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html>, notes of
//! 2026-11. Quirks:
//! - The model stands in the path, as one encoded segment: an id, an inference profile or an ARN. So
//!   does the wish for a stream.
//! - A request is signed, or carries one of Bedrock's own keys as a bearer. The signature is for
//!   `bedrock`, the host says `bedrock-runtime`.
//! - Vectors come from models asked in shapes of their own, at another method.

use backstop_classifier::Family;
use backstop_dialects::{Dialect, Operation};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue};

use crate::adapter::{Adapter, Signature};
use crate::segment::segment;
use crate::setting::said;
use crate::{Call, Error, KeyForm, Needed, Provider, Setting, When};

const FRAMES: HeaderValue = HeaderValue::from_static("application/vnd.amazon.eventstream");

static NEEDS: [Needed; 1] = [Needed {
    setting: Setting::Region,
    variables: &["AWS_REGION", "AWS_DEFAULT_REGION"],
    when: When::Addressing,
}];

/// Bedrock's runtime, or a server that resembles it.
#[derive(Debug)]
pub(crate) struct Bedrock;

impl Adapter for Bedrock {
    fn dialect(&self) -> Dialect {
        Dialect::BedrockConverse
    }

    fn family(&self) -> Family {
        Family::Bedrock
    }

    fn path(&self) -> &'static str {
        "/model"
    }

    fn call_path(&self, _provider: &Provider, call: &Call<'_>) -> Option<String> {
        Some(method(
            call,
            if call.stream {
                "/converse-stream"
            } else {
                "/converse"
            },
        ))
    }

    fn operation_path(&self, _provider: &Provider, call: &Call<'_>) -> Option<String> {
        (call.operation == Operation::Embed).then(|| method(call, "/invoke"))
    }

    fn version(&self) -> &'static str {
        ""
    }

    fn needs(&self) -> &'static [Needed] {
        &NEEDS
    }

    fn base_url(&self, settings: &[(Setting, String)]) -> Option<String> {
        let region = said(settings, Setting::Region)?;
        let partition = if region.starts_with("cn-") { ".cn" } else { "" };
        Some(format!(
            "https://bedrock-runtime.{region}.amazonaws.com{partition}"
        ))
    }

    fn key_forms(&self) -> &'static [KeyForm] {
        &[KeyForm::Value, KeyForm::Aws]
    }

    fn signature(&self) -> Signature {
        Signature::Aws { service: "bedrock" }
    }

    fn own_headers(&self, call: &Call<'_>, headers: &mut HeaderMap) -> Result<(), Error> {
        if call.stream {
            headers.insert(ACCEPT, FRAMES);
        }
        Ok(())
    }
}

/// The path of a method of the call's model.
fn method(call: &Call<'_>, name: &str) -> String {
    let mut path = "/model/".to_owned();
    segment(call.model.as_str(), &mut path);
    path.push_str(name);
    path
}

#[cfg(test)]
mod tests {
    use backstop_units::{KeyId, ModelName, ProviderId, RequestId, Secret};
    use bytes::Bytes;

    use super::*;
    use crate::{Address, AwsKey, Credential, row};

    #[test]
    fn model_and_stream_stand_in_the_path() {
        let at = Address::parse("http://127.0.0.1:9").expect("an address");
        let row = row("bedrock").expect("a known row");
        let bedrock = Provider::at(ProviderId::new("bedrock"), row, at).expect("a whole");
        for (model, stream, path) in [
            (
                "anthropic.claude-3-haiku-20240307-v1:0",
                false,
                "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse",
            ),
            (
                "arn:aws:bedrock:us-east-1:111122223333:inference-profile/us.x",
                true,
                "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A111122223333%3Ainference-profile%2Fus.x/converse-stream",
            ),
        ] {
            let (model, id) = (ModelName::new(model), RequestId::new("r"));
            let call = Call {
                stream,
                ..Call::new(&model, Bytes::new(), &id)
            };
            assert_eq!(Bedrock.call_path(&bedrock, &call).as_deref(), Some(path));
        }
    }

    #[test]
    fn a_key_signs_or_goes_out_as_a_bearer() {
        let id = ProviderId::new("bedrock");
        let key = |name| KeyId::new(&id, name);
        let signs = AwsKey {
            access_key_id: Secret::new("canary-id"),
            secret_access_key: Secret::new("canary-secret"),
            session_token: None,
        };
        let keys = [
            (key("signs"), Credential::from(signs)),
            (key("plain"), Secret::new("canary-bearer").into()),
        ];
        let at = Address::parse("http://127.0.0.1:9").expect("an address");
        let provider = Provider::at(id.clone(), row("bedrock").expect("a known row"), at)
            .and_then(|bare| bare.with_settings(vec![(Setting::Region, "eu-west-1".to_owned())]))
            .expect("a whole")
            .with_keys(keys.into());
        let to_sign = provider.to_sign(&key("signs")).expect("a key that signs");
        assert_eq!((to_sign.service, to_sign.region), ("bedrock", "eu-west-1"));
        assert!(provider.secret(&key("signs")).is_none());
        assert!(provider.to_sign(&key("plain")).is_none());
        let (model, request) = (ModelName::new("m"), RequestId::new("r"));
        let call = Call::new(&model, Bytes::from_static(b"{}"), &request);
        assert!(provider.build(&call).is_err(), "neither key nor signature");
        for (key, signed_later, want) in [
            (None, true, None),
            (
                provider.secret(&key("plain")),
                false,
                Some("Bearer canary-bearer"),
            ),
        ] {
            let call = Call {
                key,
                signed_later,
                ..call.clone()
            };
            let built = provider.build(&call).expect("a request");
            let sent = built.headers().get("authorization");
            assert_eq!(sent.map(|value| value.as_bytes()), want.map(str::as_bytes));
        }
    }

    #[test]
    fn a_region_has_an_address() {
        for (region, want) in [
            (
                "eu-west-1",
                "https://bedrock-runtime.eu-west-1.amazonaws.com",
            ),
            (
                "cn-north-1",
                "https://bedrock-runtime.cn-north-1.amazonaws.com.cn",
            ),
        ] {
            let settings = [(Setting::Region, region.to_owned())];
            assert_eq!(Bedrock.base_url(&settings).as_deref(), Some(want));
        }
    }
}
