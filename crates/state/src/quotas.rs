//! How many requests came to each group of a route in the last minute.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use backstop_admission::Window;
use backstop_policy::Quota;
use backstop_units::{GroupName, Moment, RouteName};

use crate::sync::{Mutex, lock};

/// A route's group. Names come from the configuration alone, so there are as many as it lists.
type Id = (RouteName, GroupName);

#[derive(Debug, Default)]
pub(crate) struct Quotas {
    groups: Mutex<HashMap<Id, Window>>,
}

impl Quotas {
    /// Counts a request in, if its group has room.
    pub(crate) fn admit(&self, quota: &Quota, now: Moment) -> Result<(), Moment> {
        /// A group that takes none at all is looked at again when the next minute has passed.
        const NEVER: Duration = Duration::from_secs(60);
        let mut groups = lock(&self.groups);
        let id = (quota.route.clone(), quota.group.clone());
        let window = groups.entry(id).or_default();
        window
            .admit(now, u64::from(quota.per_minute), 1)
            .map_err(|wait| now + wait.unwrap_or(NEVER))
    }

    /// Forgets routes that the configuration names no more.
    pub(crate) fn retain(&self, routes: &HashSet<RouteName>) {
        lock(&self.groups).retain(|(route, _), _| routes.contains(route));
    }
}
