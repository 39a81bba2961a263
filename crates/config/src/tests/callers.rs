//! Who may ask, as a file says it.

use std::time::SystemTime;

use backstop_admission::{Allowed, KeyHash, Limits};
use backstop_units::{MicroUsd, RouteName, Tokens};

use super::snapshot;

#[test]
fn callers_have_borders_limits_and_hashed_keys() {
    let key = "bsk-canary-canary-canary-canary";
    let hash = KeyHash::of(key);
    let text = format!(
        r#"
        [server]
        listen = "0.0.0.0:8080"
        [providers.openai]
        keys = ["sk-canary"]
        [routes]
        chat = "openai/gpt-4o"
        [callers.team]
        keys = ["{hash}"]
        routes = ["chat"]
        providers = ["*"]
        direct = false
        may = ["fallbacks"]
        requests_per_minute = 60
        tokens_per_minute = 100000
        in_flight = 5
        usd_per_day = 1.5
        expires = "2027-01-31T00:00:00Z"
        [prices."openai/gpt-4o"]
        input = 2.5
        output = 10
        cache_read = 1.25
        "#
    );
    let snapshot = snapshot("backstop.toml", &text);
    assert!(!snapshot.server.listen.ip().is_loopback());
    let caller = snapshot
        .callers
        .who(key, SystemTime::UNIX_EPOCH)
        .expect("its key");
    assert_eq!(caller.name.as_str(), "team");
    assert!(caller.border.route(&RouteName::new("chat")).is_ok());
    assert!(caller.border.route(&RouteName::new("other")).is_err());
    assert_eq!(caller.border.providers, Allowed::All);
    assert!(!caller.border.direct && caller.may.fallbacks && !caller.may.pin_keys);
    assert_eq!(
        caller.limits,
        Limits {
            requests_per_minute: Some(60),
            tokens_per_minute: Some(Tokens(100_000)),
            in_flight: Some(5),
            money_per_day: Some(MicroUsd(1_500_000)),
            money_per_month: None,
        }
    );
    assert!(caller.expires.is_some());
    let price = snapshot.prices.get("openai/gpt-4o").expect("priced");
    assert_eq!((price.input, price.output), (2_500_000, 10_000_000));
    assert_eq!(
        (price.cache_read, price.cache_write),
        (Some(1_250_000), None)
    );
    assert!(!format!("{snapshot:?}").contains("canary"));
}
