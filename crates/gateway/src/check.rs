//! `backstop check`: is the configuration right, and what does it mean?

use std::io::{self, Write};

use backstop_config::Snapshot;
use backstop_policy::Route;
use backstop_providers::{Credential, KeyForm, Setting};
use backstop_server::Tls;
use backstop_units::KeyId;

use crate::Source;
use crate::environment::read;

/// The arguments of `backstop check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,
}

/// Reads the configuration and prints what it means.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let file = args.source.file();
    let snapshot = read(file.as_deref(), 1)?;
    if let Some(files) = &snapshot.tls {
        Tls::new(&files.certificate, files.private_key.expose())?;
    }
    let mut out = io::stdout().lock();
    match &file {
        Some(file) => writeln!(out, "{} is right", file.display())?,
        None => writeln!(out, "no file; the well-known environment variables speak")?,
    }
    describe(&snapshot, &mut out)?;
    Ok(())
}

fn describe(snapshot: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "listens on {}", snapshot.server.listen)?;
    let mut providers: Vec<_> = snapshot.providers.values().collect();
    providers.sort_by_key(|provider| provider.id().clone());
    for provider in providers {
        let shown = |(key, credential): (&KeyId, &Credential)| match credential.form() {
            KeyForm::Value => key.name().to_owned(),
            form => format!("{} by {}", key.name(), form.field()),
        };
        let mut keys: Vec<_> = provider.keys().map(shown).collect();
        keys.sort_unstable();
        let keys = if keys.is_empty() {
            "no key".to_owned()
        } else {
            keys.join(", ")
        };
        let said = Setting::ALL.iter().filter_map(|setting| {
            let value = provider.setting(*setting)?;
            Some(format!(", {} {value}", setting.field()))
        });
        let said: String = said.collect();
        writeln!(
            out,
            "provider {}: {} at {}{said} ({keys})",
            provider.id(),
            provider.dialect(),
            provider.address().host(),
        )?;
    }
    let mut routes: Vec<_> = snapshot.routes.values().collect();
    routes.sort_by_key(|route| route.name.clone());
    for route in routes {
        describe_route(route, out)?;
    }
    if snapshot.routes.is_empty() {
        writeln!(out, "no routes; callers name `provider/model`")?;
    }
    Ok(())
}

fn describe_route(route: &Route, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "route {}: at most {} sends in {} s",
        route.name,
        route.limits.max_attempts,
        route.limits.deadline.as_secs_f64(),
    )?;
    for group in &route.groups {
        let channels: Vec<_> = group
            .channels
            .iter()
            .map(|channel| channel.label())
            .collect();
        writeln!(out, "  group {}: {}", group.name, channels.join(", "))?;
    }
    for substitution in &route.substitutions {
        let on: Vec<_> = substitution.on.iter().map(|class| class.name()).collect();
        let on = if on.is_empty() {
            String::new()
        } else {
            format!(" on {}", on.join(", "))
        };
        writeln!(out, "  substitution {}{on}", substitution.channel.label())?;
    }
    Ok(())
}
