//! The files in which AWS' own tools keep keys.
//!
//! Source: <https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>, notes of 2026-11. Only
//! what a key and its region need is read; of everything that leads to a key by way of a network or
//! a program it is said that it does.

use std::path::Path;

use super::Resolver;
use crate::fault::Problem;

/// A profile that holds a key.
pub(crate) struct AwsProfile {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: String,
    pub(crate) session_token: Option<String>,
    pub(crate) region: Option<String>,
}

/// A file of AWS' tools, by the variable that moves it and where it lies without one.
struct Known {
    variable: &'static str,
    below_home: &'static str,
    /// How the sections of profiles begin.
    prefix: &'static str,
}

const CREDENTIALS: Known = Known {
    variable: "AWS_SHARED_CREDENTIALS_FILE",
    below_home: ".aws/credentials",
    prefix: "",
};

const CONFIG: Known = Known {
    variable: "AWS_CONFIG_FILE",
    below_home: ".aws/config",
    prefix: "profile ",
};

/// Settings of a profile that lead to a key elsewhere, and what they say about it.
const ELSEWHERE: [(&str, &str); 7] = [
    ("sso_session", "signs in with SSO, which is not done here"),
    ("sso_start_url", "signs in with SSO, which is not done here"),
    (
        "login_session",
        "signs in with a browser, which is not done here",
    ),
    ("role_arn", "assumes a role, which is not done here"),
    (
        "web_identity_token_file",
        "assumes a role, which is not done here",
    ),
    (
        "credential_source",
        "asks the machine it runs on, which is not done here",
    ),
    (
        "credential_process",
        "runs a program, which is not done here",
    ),
];

impl Resolver<'_> {
    /// Whether AWS' variables or files speak of a key.
    pub(crate) fn has_aws_key(&self) -> bool {
        let named = ["AWS_ACCESS_KEY_ID", "AWS_PROFILE"];
        named.iter().any(|name| self.variable(name).is_some()) || self.known(&CREDENTIALS).is_some()
    }

    /// The profile called `name`, from both files; the one that holds keys comes first.
    pub(crate) fn aws_profile(&self, name: &str) -> Result<AwsProfile, Problem> {
        let texts = [&CREDENTIALS, &CONFIG].map(|known| (known, self.known(known)));
        let mut settings = Vec::new();
        let mut found = false;
        for (known, text) in &texts {
            let section = section(text.as_deref().unwrap_or_default(), known.prefix, name);
            found |= section.is_some();
            settings.extend(section.into_iter().flatten());
        }
        let said = |wanted: &str| {
            let mut settings = settings.iter();
            let found = settings.find(|(name, value)| name == wanted && !value.is_empty());
            found.map(|(_, value)| value.clone())
        };
        let problem = |why| Problem::AwsProfile {
            name: name.to_owned(),
            why,
        };
        if !found {
            return Err(problem(
                "is in neither ~/.aws/credentials nor ~/.aws/config",
            ));
        }
        let keys = said("aws_access_key_id").zip(said("aws_secret_access_key"));
        let Some((access_key_id, secret_access_key)) = keys else {
            let elsewhere = ELSEWHERE
                .iter()
                .find(|(setting, _)| said(setting).is_some());
            return Err(problem(
                elsewhere.map_or("holds no whole key", |(_, why)| *why),
            ));
        };
        Ok(AwsProfile {
            access_key_id,
            secret_access_key,
            session_token: said("aws_session_token"),
            region: said("region"),
        })
    }

    /// The text of a file, where it is and can be read.
    fn known(&self, known: &Known) -> Option<String> {
        let path = match self.variable(known.variable) {
            Some(path) => path,
            None => {
                let home = ["HOME", "USERPROFILE"];
                let home = home.iter().find_map(|name| self.variable(name))?;
                format!("{home}/{}", known.below_home)
            }
        };
        self.sources.file(Path::new(&path)).ok()
    }
}

/// What stands in the section of a profile; `None` where there is no such section. Names are lower
/// case; what is nested below a setting belongs to other tools.
fn section(text: &str, prefix: &str, name: &str) -> Option<Vec<(String, String)>> {
    let mut found = None;
    let mut within = false;
    for line in text.lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if let Some(head) = bare.strip_prefix('[') {
            let head = head.split(']').next().unwrap_or_default().trim();
            let profile = head.strip_prefix(prefix).map(str::trim);
            within = profile == Some(name) || (head == name && name == "default");
            if within {
                found.get_or_insert_with(Vec::new);
            }
            continue;
        }
        let nested = line.starts_with([' ', '\t']);
        let setting = bare.split_once('=').filter(|_| within && !nested);
        if let (Some((setting, value)), Some(found)) = (setting, &mut found) {
            // A remark may follow a value, after a blank.
            let value = value.split(" #").next().unwrap_or_default();
            found.push((setting.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_of_a_profile_is_found_as_each_file_writes_it() {
        let credentials =
            "[other]\na = 1\n\n; remark\n[ dev ] # ours\nAWS_Key=x=y # why\n  nested = 2\n";
        let config = "[default]\nregion = eu-west-1\n[profile dev]\nregion=us-east-1\n[devious]\n";
        let one = |name: &str, value: &str| Some(vec![(name.to_owned(), value.to_owned())]);
        for (text, prefix, name, want) in [
            (credentials, "", "dev", one("aws_key", "x=y")),
            (credentials, "", "default", None),
            (config, "profile ", "dev", one("region", "us-east-1")),
            (config, "profile ", "default", one("region", "eu-west-1")),
            (config, "profile ", "devious", None),
            ("", "", "dev", None),
        ] {
            assert_eq!(section(text, prefix, name), want, "{name}");
        }
    }
}
