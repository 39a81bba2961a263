//! What an operator says about an account besides its address and keys.

/// What [`Setting::ApiVersion`] says where no date is wanted.
pub(crate) const V1: &str = "v1";

/// Something that a kind of provider needs to know to make an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// The cloud project that pays.
    Project,
    /// Where the cloud computes: a region, or `global`.
    Location,
    /// AWS' word for where the cloud computes.
    Region,
    /// Which version of an API is spoken, where its paths do not say.
    ApiVersion,
}

impl Setting {
    /// Every setting.
    pub const ALL: &'static [Self] = &[
        Self::Project,
        Self::Location,
        Self::Region,
        Self::ApiVersion,
    ];

    /// The field of a provider that holds it.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Location => "location",
            Self::Region => "region",
            Self::ApiVersion => "api_version",
        }
    }

    /// What would be accepted.
    #[must_use]
    pub const fn accepted(self) -> &'static str {
        match self {
            Self::Project => "a project id such as \"my-project-1\"",
            Self::Location => "a location such as \"us-central1\", or \"global\"",
            Self::Region => "a region such as \"us-east-1\"",
            Self::ApiVersion => "\"v1\", or a date such as \"2024-10-21\"",
        }
    }

    /// Whether a text can stand where it is used: in a path, or in a host's name.
    #[must_use]
    pub fn fits(self, value: &str) -> bool {
        let odd: &[u8] = match self {
            // Old projects belong to a domain: `example.com:project`.
            Self::Project => b"-.:",
            Self::Location | Self::Region | Self::ApiVersion => b"-",
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || odd.contains(&byte);
        (1..=64).contains(&value.len())
            && value.bytes().all(fits)
            && (self != Self::ApiVersion || value == V1 || value.starts_with("20"))
    }
}

/// What was said about `setting`.
pub(crate) fn said(settings: &[(Setting, String)], setting: Setting) -> Option<&str> {
    let mut settings = settings.iter();
    settings.find_map(|(name, value)| (*name == setting).then_some(value.as_str()))
}

/// A setting that a kind of provider has a use for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needed {
    /// Which.
    pub setting: Setting,
    /// The environment variables that its users keep it in, the first one first.
    pub variables: &'static [&'static str],
    /// When it must be known.
    pub when: When,
}

/// When a setting must be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Whatever else is said.
    Always,
    /// For an address, where the operator gives none, and for a signature.
    Addressing,
    /// It may stay unsaid.
    Never,
}
