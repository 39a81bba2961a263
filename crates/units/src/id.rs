//! Names that identify: cheap to clone, hashable, never mixed up with one another.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), &*self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

macro_rules! plain_name {
    ($(#[$doc:meta])* $name:ident) => {
        name! { $(#[$doc])* $name }

        impl $name {
            /// Names it.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }
        }
    };
}

plain_name! {
    /// A provider as the operator named it, such as `openai`.
    ProviderId
}
plain_name! {
    /// A caller as the operator named it: whoever holds a virtual key.
    CallerName
}
plain_name! {
    /// A model as its provider names it, such as `gpt-4o`. May itself hold slashes.
    ModelName
}
plain_name! {
    /// The name a caller puts in `model`.
    RouteName
}
plain_name! {
    /// A group within a route; names the rows of a plan.
    GroupName
}
plain_name! {
    /// One caller request, end to end: the caller's `x-request-id` or ours.
    RequestId
}
name! {
    /// A channel's identity across reloads: `provider/model`, with `#key,key` when it is narrowed to
    /// a subset of the provider's keys.
    ChannelId
}
name! {
    /// A key's identity across reloads: `provider/key-name`. Never the secret.
    KeyId
}

impl ChannelId {
    /// The identity of `model` at `provider`, over all its keys when `keys` is empty.
    #[must_use]
    pub fn new(provider: &ProviderId, model: &ModelName, keys: &[KeyId]) -> Self {
        if keys.is_empty() {
            return Self(format!("{provider}/{model}").into());
        }
        let mut names: Vec<&str> = keys.iter().map(KeyId::name).collect();
        names.sort_unstable();
        Self(format!("{provider}/{model}#{}", names.join(",")).into())
    }
}

impl KeyId {
    /// The identity of the key called `name` at `provider`.
    #[must_use]
    pub fn new(provider: &ProviderId, name: &str) -> Self {
        Self(format!("{provider}/{name}").into())
    }

    /// The name of the key's provider.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.0.split_once('/').map_or("", |(provider, _)| provider)
    }

    /// The key's own name, as the operator wrote it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_the_same_whatever_the_order_of_its_keys() {
        let openai = ProviderId::new("openai");
        let model = ModelName::new("gpt-4o");
        let (a, b) = (KeyId::new(&openai, "a"), KeyId::new(&openai, "b"));
        assert_eq!(
            ChannelId::new(&openai, &model, &[]).as_str(),
            "openai/gpt-4o"
        );
        assert_eq!(
            ChannelId::new(&openai, &model, &[b.clone(), a.clone()]),
            ChannelId::new(&openai, &model, &[a, b]),
        );
    }
}
