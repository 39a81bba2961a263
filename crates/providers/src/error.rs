//! Why a provider cannot be made, or a request cannot be built.

use backstop_dialects::Operation;
use backstop_units::ProviderId;
use thiserror::Error;

/// Why a provider cannot be made, or a request cannot be built. Never holds an address's text, a
/// key or a header's value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The address does not start with a scheme we speak.
    #[error("an address starts with https:// or http://")]
    AddressScheme,
    /// The address names no host, or one that cannot be a host.
    #[error("the address has no usable host")]
    AddressHost,
    /// The address holds `user:password@`.
    #[error("an address holds no user name or password: keys belong in keys[]")]
    AddressUser,
    /// The address holds `?…` or `#…`.
    #[error("an address holds no query and no fragment")]
    AddressQuery,
    /// The row has no address of its own, and none was given.
    #[error("{kind} has no address of its own: base_url is needed")]
    AddressMissing {
        /// The registry row.
        kind: &'static str,
    },
    /// The provider needs a key and the call has none.
    #[error("{provider} needs a key")]
    KeyMissing {
        /// Who would have been called.
        provider: ProviderId,
    },
    /// The key holds bytes that no header may carry.
    #[error("the key chosen for {provider} holds characters that no header may carry")]
    KeyUnfit {
        /// Who would have been called.
        provider: ProviderId,
    },
    /// Not a credentials file of Google's.
    #[error(
        "not a Google credentials file; expected file.PATH of one, JSON with \"type\": \
         \"service_account\" or \"authorized_user\""
    )]
    GoogleFile,
    /// A credentials file that leads elsewhere for its tokens.
    #[error(
        "this type of Google credentials file is not understood; expected \"service_account\" or \
         \"authorized_user\""
    )]
    GoogleFileType,
    /// A credentials file without something that is needed.
    #[error("the Google credentials file has no {field}")]
    GoogleFileField {
        /// What is missing.
        field: &'static str,
    },
    /// The private key of a service account is none.
    #[error("the private_key of the Google credentials file is no RSA key in PEM")]
    PrivateKeyUnfit,
    /// Where tokens are asked for is no address that a secret may go to.
    #[error("tokens are asked for at an https:// address, or at a host inside")]
    TokenAddress,
    /// An address below which Azure has no models.
    #[error(
        "not an endpoint of Azure's; expected one such as https://my-resource.openai.azure.com, \
         with nothing below it but /openai, /openai/v1 or /models"
    )]
    AzureAddress,
    /// Not a directory of Entra's.
    #[error("a tenant is the id of a directory, or its domain")]
    EntraTenant,
    /// The provider has no call for what is asked.
    #[error("{provider} has no call to {operation} with this model")]
    NoSuchOperation {
        /// Who would have been called.
        provider: ProviderId,
        /// What for.
        operation: Operation,
    },
    /// The request id holds bytes that no header may carry.
    #[error("the request id holds characters that no header may carry")]
    RequestId,
}
