//! The names that may become labels: configured ones, and no more of them than a cap.

use std::collections::{HashMap, HashSet};

/// The label of every name that was not configured.
pub const OTHER: &str = "other";

/// How many routes, providers, models and channels may become labels over the life of the process.
///
/// What was counted stays on the page after a reload drops its name, so names are never forgotten
/// and only a cap keeps the page finite. 2,000 of each is far above any configuration we
/// know of; our own choice.
const CAP: usize = 2_000;

/// Every configured name seen since the start (of channels: those in force), up to [`CAP`] of each
/// kind.
#[derive(Debug, Default)]
pub(super) struct Names {
    routes: HashSet<Box<str>>,
    channels: HashSet<Box<str>>,
    /// Provider to its models. The cap counts pairs, since pairs are what becomes series.
    models: HashMap<Box<str>, HashSet<Box<str>>>,
    pairs: usize,
}

impl Names {
    pub(super) fn learn_route(&mut self, route: &str) {
        if self.routes.len() < CAP {
            self.routes.insert(route.into());
        }
    }

    /// The channels of the configuration in force. Only gauges name channels, and a gauge of a
    /// channel that is gone would be a lie, so earlier ones are forgotten.
    pub(super) fn replace_channels<'a>(&mut self, channels: impl Iterator<Item = &'a str>) {
        self.channels = channels.take(CAP).map(Box::from).collect();
    }

    pub(super) fn learn_provider(&mut self, provider: &str) {
        if self.models.len() < CAP {
            self.models.entry(provider.into()).or_default();
        }
    }

    pub(super) fn learn_model(&mut self, provider: &str, model: &str) {
        if self.pairs >= CAP {
            return;
        }
        let models = self.models.entry(provider.into()).or_default();
        if models.insert(model.into()) {
            self.pairs += 1;
        }
    }

    /// The label of a route.
    pub(super) fn route<'a>(&self, name: &'a str) -> &'a str {
        if self.routes.contains(name) {
            name
        } else {
            OTHER
        }
    }

    /// The label of a channel; `None` when it is not configured, since a gauge that many unnamed
    /// channels would overwrite says nothing.
    pub(super) fn channel<'a>(&self, name: &'a str) -> Option<&'a str> {
        self.channels.contains(name).then_some(name)
    }

    /// The labels of a provider and its model.
    pub(super) fn pair<'a>(&self, provider: &'a str, model: &'a str) -> (&'a str, &'a str) {
        match self.models.get(provider) {
            Some(models) if models.contains(model) => (provider, model),
            Some(_) => (provider, OTHER),
            None => (OTHER, OTHER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_configured_name_or_other() {
        let mut names = Names::default();
        names.learn_route("fast");
        names.replace_channels(["openai/gpt-4o"].into_iter());
        names.learn_model("openai", "gpt-4o");
        assert_eq!(names.route("fast"), "fast");
        assert_eq!(names.route("made-up"), OTHER);
        assert_eq!(names.pair("openai", "gpt-4o"), ("openai", "gpt-4o"));
        assert_eq!(names.pair("openai", "made-up"), ("openai", OTHER));
        assert_eq!(names.pair("made-up", "gpt-4o"), (OTHER, OTHER));
        assert_eq!(names.channel("openai/gpt-4o"), Some("openai/gpt-4o"));
        assert_eq!(names.channel("made-up/gpt-4o"), None);
    }

    #[test]
    fn a_thousand_reloads_with_new_names_stay_under_the_cap() {
        let mut names = Names::default();
        for i in 0..5 * CAP {
            let name = format!("n{i}");
            names.learn_route(&name);
            names.learn_model(&name, &name);
        }
        assert_eq!(names.routes.len(), CAP);
        assert_eq!(names.models.len(), CAP);
        assert_eq!(names.route("n0"), "n0", "the first ones keep their names");
        let last = format!("n{}", 5 * CAP - 1);
        assert_eq!(names.route(&last), OTHER);
    }
}
