//! From a file, or from the environment, to a snapshot.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backstop_providers::{Needed, Setting, When, rows};

use crate::check::Check;
use crate::fault::Error;
use crate::raw::{Raw, RawProvider};
use crate::snapshot::{Origin, Snapshot};
use crate::sources::{Resolver, Sources};
use crate::tree::{Document, Spelling};

/// Reads, checks and builds the configuration that lies at `file`. `version` is this process's
/// count of configurations.
///
/// # Errors
/// When the file cannot be read or says something we cannot do: every fault that was found, with
/// its place.
pub fn load(file: &Path, sources: &dyn Sources, version: u64) -> Result<Snapshot, Error> {
    let text = sources.file(file).map_err(|source| Error::Unreadable {
        file: file.to_owned(),
        source,
    })?;
    read(file, &text, sources, version)
}

/// The same for a text that is at hand. `file` names it in messages, tells its spelling, and is
/// where a relative `file.PATH` starts from.
///
/// # Errors
/// As for [`load`].
pub fn read(
    file: &Path,
    text: &str,
    sources: &dyn Sources,
    version: u64,
) -> Result<Snapshot, Error> {
    let document = Document::parse(file, text, Spelling::of(file, text))?;
    let (mut raw, document) = document.decode::<Raw>()?;
    if raw.providers.is_none() {
        raw.providers = Some(well_known(sources)?);
    }
    let origin = Origin::File(PathBuf::from(file));
    let check = Check::of_file(file, document, sources);
    Ok(check.snapshot(raw, origin, fingerprint(text), version)?)
}

/// The configuration of a start without file: each provider whose well-known variable is set, at
/// its public address or the one its base-URL variable names, on the default loopback address.
///
/// # Errors
/// When no such variable is set, or one of them says something we cannot do.
pub fn from_environment(sources: &dyn Sources, version: u64) -> Result<Snapshot, Error> {
    let providers = well_known(sources)?;
    let mut text = String::new();
    for (name, provider) in &providers {
        text.push_str(name);
        text.push(' ');
        text.push_str(provider.base_url.as_deref().unwrap_or_default());
        text.push('\n');
    }
    let raw = Raw {
        providers: Some(providers),
        ..Raw::default()
    };
    let check = Check::of_environment(sources);
    Ok(check.snapshot(raw, Origin::Environment, fingerprint(&text), version)?)
}

/// The providers that the environment's well-known variables speak of: those with a key, and
/// those that need none and are given an address.
fn well_known(sources: &dyn Sources) -> Result<BTreeMap<String, RawProvider>, Error> {
    let resolver = Resolver::new(sources, Path::new(""));
    let is_set = |name: Option<&str>| name.is_some_and(|name| resolver.variable(name).is_some());
    let mut providers = BTreeMap::new();
    for row in rows() {
        let moved = is_set(row.base_url_variable);
        // Google's variable is set for many things; it speaks of models where a place is named too.
        let needs = row.adapter.needs().iter();
        let placed = needs
            .filter(|needed| needed.setting != Setting::Project && needed.when != When::Never)
            .all(|needed| needed.variables.iter().any(|name| is_set(Some(name))));
        // Nor does Azure's, without its endpoint.
        let own = |needed: &Needed| needed.when != When::Never;
        let placed =
            placed && (moved || row.base_url.is_some() || row.adapter.needs().iter().any(own));
        if (is_set(row.key_variable) && placed) || (row.keyless && moved) {
            let provider = RawProvider {
                base_url: row
                    .base_url_variable
                    .filter(|_| moved)
                    .map(|name| format!("env.{name}")),
                ..RawProvider::default()
            };
            providers.insert(row.kind.to_owned(), provider);
        }
    }
    if providers.is_empty() {
        let alone = rows().iter().filter(|row| row.adapter.needs().is_empty());
        let accepted = alone.filter_map(|row| {
            if row.keyless {
                row.base_url_variable
            } else {
                row.key_variable
            }
        });
        return Err(Error::NothingSet {
            accepted: accepted.collect(),
        });
    }
    Ok(providers)
}

/// FNV-1a over the text: tells two files apart, nothing more.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
