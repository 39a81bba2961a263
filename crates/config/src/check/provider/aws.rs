//! `providers.<name>.keys[].aws`.

use backstop_providers::AwsKey;
use backstop_units::Secret;

use super::key::{A_KEY, usable};
use crate::check::Check;
use crate::fault::Problem;
use crate::path::FieldPath;
use crate::raw::RawAws;

const A_PROFILE: &str = "the name of a profile";

impl Check<'_> {
    /// An access key, and the region of its profile where it has one.
    pub(super) fn aws(&mut self, at: &FieldPath, raw: &RawAws) -> Option<(AwsKey, Option<String>)> {
        let typed = [
            ("access_key_id", raw.access_key_id.as_deref()),
            ("secret_access_key", raw.secret_access_key.as_deref()),
            ("session_token", raw.session_token.as_deref()),
        ];
        let first = typed.iter().find(|(_, value)| value.is_some());
        match (&raw.profile, first) {
            (Some(_), Some((other, _))) => {
                let problem = Problem::Contradiction {
                    other,
                    accepted: "a profile, or the key itself",
                };
                self.fault(&at.field("profile"), problem);
                None
            }
            (None, Some(_)) => self.aws_key(at, typed.map(|(_, value)| value)),
            (Some(profile), None) => {
                let at = at.field("profile");
                let name = self.resolver.resolve(profile, A_PROFILE);
                let name = self.take(&at, name)?;
                self.aws_profile(&at, &name)
            }
            (None, None) if self.resolver.variable("AWS_ACCESS_KEY_ID").is_some() => {
                let token = "AWS_SESSION_TOKEN";
                let token = self
                    .resolver
                    .variable(token)
                    .map(|_| "env.AWS_SESSION_TOKEN");
                let id = Some("env.AWS_ACCESS_KEY_ID");
                self.aws_key(at, [id, Some("env.AWS_SECRET_ACCESS_KEY"), token])
            }
            (None, None) => {
                let name = self.resolver.variable("AWS_PROFILE");
                self.aws_profile(at, &name.unwrap_or_else(|| "default".to_owned()))
            }
        }
    }

    fn aws_key(
        &mut self,
        at: &FieldPath,
        [id, secret, token]: [Option<&str>; 3],
    ) -> Option<(AwsKey, Option<String>)> {
        let access_key_id = self.secret(&at.field("access_key_id"), id, A_KEY);
        let secret_access_key = self.secret(&at.field("secret_access_key"), secret, A_KEY);
        let session_token = match token {
            None => None,
            typed => Some(self.secret(&at.field("session_token"), typed, A_KEY)?),
        };
        let key = AwsKey {
            access_key_id: access_key_id?,
            secret_access_key: secret_access_key?,
            session_token,
        };
        Some((key, None))
    }

    fn aws_profile(&mut self, at: &FieldPath, name: &str) -> Option<(AwsKey, Option<String>)> {
        let profile = self.resolver.aws_profile(name).and_then(|profile| {
            let secret = |value: String| usable(value).map(Secret::new);
            let key = AwsKey {
                access_key_id: secret(profile.access_key_id)?,
                secret_access_key: secret(profile.secret_access_key)?,
                session_token: profile.session_token.map(secret).transpose()?,
            };
            Ok((key, profile.region))
        });
        self.take(at, profile)
    }
}
