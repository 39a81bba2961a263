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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    const CREDENTIALS: &str = "[default]\naws_access_key_id = canary-d\naws_secret_access_key = canary-ds\n\
        [dev]\naws_access_key_id=canary-id\naws_secret_access_key=canary/secret+\naws_session_token=canary-token\n";
    const CONFIG: &str = "[profile dev]\nregion = eu-central-1\n\
        [profile sso]\nsso_session = canary\nregion = eu-west-1\n\
        [profile role]\nrole_arn = canary\nsource_profile = dev\n\
        [profile program]\ncredential_process = canary\n\
        [profile half]\naws_access_key_id = canary\n";

    fn home() -> Fake {
        Fake::default()
            .with("HOME", "/home/me")
            .with_file("/home/me/.aws/credentials", CREDENTIALS)
            .with_file("/home/me/.aws/config", CONFIG)
    }

    fn raw(id: Option<&str>, secret: Option<&str>, profile: Option<&str>) -> RawAws {
        RawAws {
            access_key_id: id.map(str::to_owned),
            secret_access_key: secret.map(str::to_owned),
            session_token: None,
            profile: profile.map(str::to_owned),
        }
    }

    #[test]
    fn a_key_is_typed_in_the_environment_or_in_a_profile() {
        let env = home()
            .with("AWS_ACCESS_KEY_ID", "canary-env")
            .with("AWS_SECRET_ACCESS_KEY", "canary-envs")
            .with("AWS_SESSION_TOKEN", "canary-envt");
        let named = home().with("AWS_PROFILE", "dev");
        let moved = Fake::default()
            .with("AWS_SHARED_CREDENTIALS_FILE", "/run/secrets/aws")
            .with_file("/run/secrets/aws", CREDENTIALS);
        let typed = raw(Some("env.AWS_ACCESS_KEY_ID"), Some("canary-typed"), None);
        let (none, dev) = (raw(None, None, None), raw(None, None, Some("dev")));
        let (token, region) = (Some("canary-token"), Some("eu-central-1"));
        for (sources, raw, want) in [
            (&env, &typed, ("canary-env", "canary-typed", None, None)),
            (
                &env,
                &none,
                ("canary-env", "canary-envs", Some("canary-envt"), None),
            ),
            (&env, &dev, ("canary-id", "canary/secret+", token, region)),
            (
                &named,
                &none,
                ("canary-id", "canary/secret+", token, region),
            ),
            (&home(), &none, ("canary-d", "canary-ds", None, None)),
            (&moved, &dev, ("canary-id", "canary/secret+", token, None)),
        ] {
            let mut check = Check::of_environment(sources);
            let (key, region) = check.aws(&FieldPath::default(), raw).expect("a key");
            let token = key.session_token.as_ref().map(Secret::expose);
            let found = (
                key.access_key_id.expose(),
                key.secret_access_key.expose(),
                token,
                region.as_deref(),
            );
            assert_eq!(found, want);
        }
    }

    #[test]
    fn what_is_no_key_is_named_and_never_repeated() {
        let (id, secret) = (Some("canary-id"), Some("canary-s"));
        let env = Fake::default().with("AWS_ACCESS_KEY_ID", "canary-env");
        let mut both = raw(id, secret, Some("dev"));
        both.session_token = Some("canary".to_owned());
        for (sources, raw, want) in [
            (
                &home(),
                raw(id, None, None),
                "aws.secret_access_key: missing",
            ),
            (
                &home(),
                raw(None, secret, None),
                "aws.access_key_id: missing",
            ),
            (&home(), both, "aws.profile: contradicts access_key_id"),
            (
                &home(),
                raw(Some("two words"), secret, None),
                "aws.access_key_id: not a usable key",
            ),
            (
                &env,
                raw(None, None, None),
                "AWS_SECRET_ACCESS_KEY is not set",
            ),
            (&home(), raw(None, None, Some("sso")), "signs in with SSO"),
            (&home(), raw(None, None, Some("role")), "assumes a role"),
            (&home(), raw(None, None, Some("program")), "runs a program"),
            (
                &home(),
                raw(None, None, Some("half")),
                "holds no whole key; expected a profile with",
            ),
            (&home(), raw(None, None, Some("gone")), "is in neither"),
            (&Fake::default(), raw(None, None, None), "is in neither"),
        ] {
            let mut check = Check::of_environment(sources);
            let at = FieldPath::default().field("aws");
            assert!(check.aws(&at, &raw).is_none(), "{want}");
            let told = check.faults.to_string();
            assert!(told.contains(want), "{want}: {told}");
            assert!(!told.contains("canary"), "{told}");
        }
    }
}
