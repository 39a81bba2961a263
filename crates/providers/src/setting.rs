//! What an operator says about an account besides its address and keys.

/// Something that a kind of provider needs to know to make an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// The cloud project that pays.
    Project,
    /// Where the cloud computes: a region, or `global`.
    Location,
}

impl Setting {
    /// Every setting.
    pub const ALL: &'static [Self] = &[Self::Project, Self::Location];

    /// The field of a provider that holds it.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Location => "location",
        }
    }

    /// What would be accepted.
    #[must_use]
    pub const fn accepted(self) -> &'static str {
        match self {
            Self::Project => "a project id such as \"my-project-1\"",
            Self::Location => "a location such as \"us-central1\", or \"global\"",
        }
    }

    /// Whether a text can stand where it is used: in a path, or in a host's name.
    #[must_use]
    pub fn fits(self, value: &str) -> bool {
        let odd: &[u8] = match self {
            // Old projects belong to a domain: `example.com:project`.
            Self::Project => b"-.:",
            Self::Location => b"-",
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || odd.contains(&byte);
        (1..=64).contains(&value.len()) && value.bytes().all(fits)
    }
}

/// What was said about `setting`.
pub(crate) fn said(settings: &[(Setting, String)], setting: Setting) -> Option<&str> {
    let mut settings = settings.iter();
    settings.find_map(|(name, value)| (*name == setting).then_some(value.as_str()))
}

/// A setting that a kind of provider cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needed {
    /// Which.
    pub setting: Setting,
    /// The environment variable that its users keep it in.
    pub variable: &'static str,
}
