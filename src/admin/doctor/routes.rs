//! Warns when alerts that always fire are investigated like any other.

use tarsy_config::Config;
use tarsy_core::routing::Facts;

/// Alerts of kube-prometheus that fire although nothing is wrong: one proves that alerts arrive, the other one lets
/// Alertmanager inhibit alerts with the severity `info`.
const ALWAYS_FIRING: [&str; 2] = ["Watchdog", "InfoInhibitor"];

/// The example of a route for them.
pub(super) const EXAMPLE_ROUTE: &str =
    "tarsy config example has the route always-firing, which ignores them, as a comment";

/// A hint for a configuration without a route that ignores these alerts; `None` if each has one.
pub(super) fn always_firing(config: &Config) -> Option<String> {
    let investigated: Vec<&str> = ALWAYS_FIRING
        .into_iter()
        .filter(|name| {
            let route = config.routes.first(&Facts::of_name(name));
            route.is_none_or(|route| !route.ignore)
        })
        .collect();
    if investigated.is_empty() {
        return None;
    }
    Some(format!(
        "{}, which always fire, are investigated as low",
        investigated.join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_config::EXAMPLE;

    #[test]
    fn the_route_for_alerts_that_always_fire_is_named_until_it_is_there() {
        let check = |text: &str| always_firing(&Config::parse("f", text, &|_| None).unwrap());
        let found = check("").unwrap();
        assert_eq!(
            found,
            "Watchdog and InfoInhibitor, which always fire, are investigated as low"
        );
        let one = "routes: [{name: a, match: [alertname=Watchdog], ignore: true}]";
        assert!(check(one).unwrap().starts_with("InfoInhibitor, which"));
        assert!(check("routes: [{name: all, match: []}, {name: a, match: ['@type=~\".*\"'], ignore: true}]").is_some());
        let line = EXAMPLE
            .lines()
            .find(|line| line.contains("name: always-firing"))
            .unwrap();
        assert_eq!(
            check(&format!("routes:\n{}", line.replacen("# ", "", 1))),
            None,
            "{line}"
        );
    }
}
