//! Azure's models: OpenAI's by deployment or at the v1 surface, and everybody's at Foundry's.
//!
//! Docs: <https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle> and
//! <https://learn.microsoft.com/rest/api/aifoundry/model-inference>, notes of 2026-11. Quirks:
//! - A model is a deployment of the operator's. With a dated API version it stands in the path and
//!   the body's `model` is not read; at the two other surfaces the body names it.
//! - Only the v1 surface has no dated version, and only there Responses are spoken.
//! - The key goes in `api-key`; a token of Entra's goes out as a bearer.
//! - `x-ms-client-request-id` lets Azure's support find a request by our id.

use backstop_classifier::Family;
use backstop_dialects::{Dialect, Operation};
use http::{HeaderMap, HeaderName};

use crate::adapter::{Adapter, Signature, request_id};
use crate::openai::RESPONSES;
use crate::segment::segment;
use crate::setting::{V1, said};
use crate::{Address, Call, Error, KeyForm, Needed, Provider, Setting, When};

const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");

/// Where Foundry's resources are; the operator's own name stands before it.
const FOUNDRY_HOST: &str = ".services.ai.azure.com";

/// The version of Foundry's model inference that its recorded answers were asked for with.
const FOUNDRY_VERSION: &str = "2024-05-01-preview";

static NEEDS: [Needed; 1] = [Needed {
    setting: Setting::ApiVersion,
    variables: &["OPENAI_API_VERSION"],
    when: When::Never,
}];

/// Azure, as it speaks at one of its surfaces.
#[derive(Debug)]
pub(crate) struct Azure(Surface);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surface {
    /// `/openai/v1/chat/completions`.
    V1,
    /// `/openai/deployments/{deployment}/chat/completions?api-version=…`.
    Deployments,
    /// `/models/chat/completions?api-version=…`.
    Foundry,
}

impl Azure {
    /// As it speaks where nothing else is said.
    pub(crate) const DEFAULT: &'static Self = &Self(Surface::V1);
}

impl Surface {
    /// The part of the path that requests go below.
    const fn below(self) -> &'static str {
        match self {
            Self::V1 => "/openai/v1",
            Self::Deployments => "/openai",
            Self::Foundry => "/models",
        }
    }

    /// The surface that an operator means, and the path before it.
    fn meant<'a>(address: &'a Address, version: Option<&str>) -> Result<(Self, &'a str), Error> {
        let by_version = match version {
            None | Some(V1) => Self::V1,
            Some(_) => Self::Deployments,
        };
        let path = address.path();
        if path.ends_with("/chat/completions") {
            return Err(Error::AzureAddress);
        }
        if let Some(root) = path.strip_suffix("/models") {
            return Ok((Self::Foundry, root));
        }
        let openai = path.find("/openai").map(|at| path.split_at(at));
        match openai.map(|(root, rest)| (root, &rest["/openai".len()..])) {
            Some((root, "")) => Ok((by_version, root)),
            Some((root, "/v1")) => Ok((Self::V1, root)),
            Some((_, rest)) if rest.starts_with('/') => Err(Error::AzureAddress),
            _ if address.host().ends_with(FOUNDRY_HOST) && version != Some(V1) => {
                Ok((Self::Foundry, path))
            }
            _ => Ok((by_version, path)),
        }
    }
}

impl Adapter for Azure {
    fn dialect(&self) -> Dialect {
        Dialect::OpenAiChat
    }

    fn family(&self) -> Family {
        Family::Azure
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn also(&self) -> &'static [(Dialect, &'static str)] {
        match self.0 {
            Surface::V1 => RESPONSES,
            Surface::Deployments | Surface::Foundry => &[],
        }
    }

    fn version(&self) -> &'static str {
        ""
    }

    fn needs(&self) -> &'static [Needed] {
        &NEEDS
    }

    fn settled(
        &self,
        address: &Address,
        settings: &[(Setting, String)],
    ) -> Result<Option<(Address, &'static dyn Adapter)>, Error> {
        let (surface, root) = Surface::meant(address, said(settings, Setting::ApiVersion))?;
        let address = address.with_path(&[root, surface.below()].concat())?;
        let adapter: &'static dyn Adapter = match surface {
            Surface::V1 => &Self(Surface::V1),
            Surface::Deployments => &Self(Surface::Deployments),
            Surface::Foundry => &Self(Surface::Foundry),
        };
        Ok(Some((address, adapter)))
    }

    fn call_path(&self, provider: &Provider, call: &Call<'_>) -> Option<String> {
        (self.0 != Surface::V1).then(|| self.below("/chat/completions", provider, call))?
    }

    fn operation_path(&self, provider: &Provider, call: &Call<'_>) -> Option<String> {
        let embeds = call.operation == Operation::Embed;
        embeds.then(|| self.below("/embeddings", provider, call))?
    }

    fn key_forms(&self) -> &'static [KeyForm] {
        &[KeyForm::Value, KeyForm::Entra]
    }

    fn signature(&self) -> Signature {
        Signature::Header("api-key")
    }

    /// OpenAI's newest models want the newer name, Foundry's others know the older one only.
    fn says_max_tokens(&self) -> bool {
        self.0 == Surface::Foundry
    }

    fn own_headers(&self, call: &Call<'_>, headers: &mut HeaderMap) -> Result<(), Error> {
        headers.insert(CLIENT_REQUEST_ID, request_id(call)?);
        Ok(())
    }
}

impl Azure {
    /// Where `what` is asked for below the surface.
    fn below(&self, what: &str, provider: &Provider, call: &Call<'_>) -> Option<String> {
        let version = provider.setting(Setting::ApiVersion);
        let mut path = String::new();
        let version = match self.0 {
            Surface::V1 => return Some(what.to_owned()),
            Surface::Deployments => {
                path.push_str("/deployments/");
                segment(call.model.as_str(), &mut path);
                version?
            }
            Surface::Foundry => version.unwrap_or(FOUNDRY_VERSION),
        };
        path.push_str(what);
        path.push_str("?api-version=");
        path.push_str(version);
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use backstop_units::{ModelName, ProviderId, RequestId, Secret};
    use bytes::Bytes;

    use super::*;
    use crate::row;

    fn azure(address: &str, version: Option<&str>) -> Result<Provider, Error> {
        let row = row("azure").expect("a known row");
        let version = version.map(|version| (Setting::ApiVersion, version.to_owned()));
        Provider::at(ProviderId::new("azure"), row, Address::parse(address)?)?
            .with_settings(version.into_iter().collect())
    }

    #[test]
    fn address_and_version_choose_the_surface() {
        let dated = Some("2024-10-21");
        let (openai, foundry) = (
            "https://r.openai.azure.com",
            "https://r.services.ai.azure.com",
        );
        let v1 = "/openai/v1/chat/completions";
        let deployments = "/openai/deployments/my%2Fgpt/chat/completions?api-version=2024-10-21";
        let models = "/models/chat/completions?api-version=2024-05-01-preview";
        for (host, path, version, want) in [
            (openai, "", None, v1),
            (openai, "", Some("v1"), v1),
            (openai, "/", dated, deployments),
            (openai, "/openai", None, v1),
            (openai, "/openai/", dated, deployments),
            (openai, "/openai/v1/", None, v1),
            // The address says it more plainly than a variable that is set for other programs.
            (openai, "/openai/v1", dated, v1),
            (foundry, "", None, models),
            (foundry, "/models", None, models),
            (foundry, "", Some("v1"), v1),
            (foundry, "/openai", None, v1),
            (foundry, "/openai", dated, deployments),
            (
                foundry,
                "",
                Some("2025-04-01"),
                "/models/chat/completions?api-version=2025-04-01",
            ),
            ("http://127.0.0.1:9", "/models", None, models),
        ] {
            let provider = azure(&[host, path].concat(), version).expect(path);
            let (model, id, key) = (
                ModelName::new("my/gpt"),
                RequestId::new("r"),
                Secret::new("k"),
            );
            let call = Call {
                key: Some(&key),
                ..Call::new(&model, Bytes::from_static(b"{}"), &id)
            };
            let request = provider.build(&call).expect("a request");
            assert_eq!(request.uri().to_string(), [host, want].concat());
            assert_eq!(request.headers()["api-key"], "k");
            assert_eq!(request.headers()["x-ms-client-request-id"], "r");
            assert!(!request.headers().contains_key("authorization"));
            let vectors = Call {
                operation: Operation::Embed,
                ..call.clone()
            };
            let vectors = provider
                .build(&vectors)
                .expect("a request")
                .uri()
                .to_string();
            let want_vectors = want.replace("chat/completions", "embeddings");
            assert_eq!(vectors, [host, &want_vectors].concat());
            let responses = provider.dialect_for(Dialect::OpenAiResponses, &model);
            assert_eq!(responses == Dialect::OpenAiResponses, want == v1, "{want}");
        }
        let behind = azure("https://proxy.example.com/azure", dated).expect("an endpoint");
        assert_eq!(
            behind.address().to_string(),
            "https://proxy.example.com/azure/openai"
        );
    }

    #[test]
    fn a_token_goes_out_as_a_bearer_and_responses_have_their_path() {
        let provider = azure("https://r.openai.azure.com", None).expect("an endpoint");
        let (model, id, key) = (ModelName::new("m"), RequestId::new("r"), Secret::new("t"));
        let call = Call {
            key: Some(&key),
            is_token: true,
            dialect: Some(Dialect::OpenAiResponses),
            ..Call::new(&model, Bytes::from_static(b"{}"), &id)
        };
        let request = provider.build(&call).expect("a request");
        assert_eq!(request.uri().path(), "/openai/v1/responses");
        assert_eq!(request.headers()["authorization"], "Bearer t");
        assert!(!request.headers().contains_key("api-key"));
    }

    #[test]
    fn an_address_of_one_deployment_alone_is_refused() {
        for path in [
            "/openai/deployments/gpt-4o",
            "/openai/deployments/gpt-4o/chat/completions",
            "/openai/v1/chat/completions",
            "/models/chat/completions",
            "/openai/v2",
        ] {
            let address = ["https://r.openai.azure.com", path].concat();
            assert_eq!(
                azure(&address, None).unwrap_err(),
                Error::AzureAddress,
                "{path}"
            );
        }
    }
}
