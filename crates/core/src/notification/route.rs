//! The filter of a route: the notifications that it wants.

use super::Moment;
use super::summary::{Outcome, Summary};
use crate::alert::Severity;

/// The filter of a route. An empty list accepts everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The moments of which the route gets messages; a configuration has at least one.
    pub on: Vec<Moment>,
    /// Names of chains. A route that lists chains learns nothing about alerts without one.
    pub chains: Vec<String>,
    pub severities: Vec<Severity>,
    /// The outcomes of ended investigations of which the route gets messages.
    pub outcomes: Vec<Outcome>,
}

/// A route by its name, with its filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFilter {
    pub name: String,
    pub filter: Filter,
}

/// The filters of all routes, as the store needs them: it writes a row for each notification that may be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters(pub Vec<NamedFilter>);

/// A route and a moment, for which a session gets a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    pub route: String,
    pub moment: Moment,
}

impl Filters {
    /// Whether there is no route, so that nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The notifications that a session of this chain may need. Severity and outcome are not final yet.
    pub fn of_session(&self, chain: &str) -> Vec<Planned> {
        let wanted = self
            .0
            .iter()
            .filter(|route| is_in(&route.filter.chains, |known| known == chain));
        wanted
            .flat_map(|route| route.filter.on.iter().map(|moment| planned(route, *moment)))
            .filter(|planned| matches!(planned.moment, Moment::Started | Moment::Ended))
            .chain(self.of_covered())
            .collect()
    }

    /// The notifications about a question that was asked in a thread of this route: its answer, whatever the route
    /// filters, and its beginning if the route wants beginnings.
    pub fn of_answer(&self, route: &str) -> Vec<Planned> {
        let routes = self.0.iter().filter(|each| each.name == route);
        routes
            .flat_map(|each| {
                let wants_start = each.filter.on.contains(&Moment::Started);
                let start = wants_start.then(|| planned(each, Moment::Started));
                start.into_iter().chain([planned(each, Moment::Ended)])
            })
            .collect()
    }

    /// The notifications about a call that waits for a person. The routes of other chains are told apart when they are
    /// sent.
    pub fn of_request(&self) -> Vec<Planned> {
        let moments = [Moment::Approval, Moment::Decided];
        self.0
            .iter()
            .flat_map(|route| {
                let wanted = moments.iter().filter(|each| route.filter.on.contains(each));
                wanted.map(|moment| planned(route, *moment))
            })
            .collect()
    }

    /// The notifications about an alert that a cooldown covers. Its chain is that of the earlier session, which only
    /// the store knows.
    pub fn of_covered(&self) -> impl Iterator<Item = Planned> {
        self.0
            .iter()
            .filter(|route| route.filter.on.contains(&Moment::Covered))
            .map(|route| planned(route, Moment::Covered))
    }

    /// The notifications about an alert that is given up without a session.
    pub fn of_dead_letter(&self) -> Vec<Planned> {
        self.0
            .iter()
            .filter(|route: &&NamedFilter| {
                route.filter.on.contains(&Moment::Ended) && route.filter.chains.is_empty()
            })
            .map(|route| planned(route, Moment::Ended))
            .collect()
    }
}

fn planned(route: &NamedFilter, moment: Moment) -> Planned {
    Planned {
        route: route.name.clone(),
        moment,
    }
}

impl Filter {
    /// Whether the route wants a notification of this moment.
    pub fn accepts(&self, moment: Moment, summary: &Summary) -> bool {
        let chain = summary.chain.as_deref();
        let outcome = match moment {
            Moment::Started | Moment::Approval | Moment::Decided => true,
            Moment::Ended | Moment::Covered => {
                is_in(&self.outcomes, |known| Some(*known) == summary.outcome)
            }
        };
        self.on.contains(&moment)
            && is_in(&self.chains, |known| Some(known.as_str()) == chain)
            && is_in(&self.severities, |known| Some(*known) == summary.severity)
            && outcome
    }
}

fn is_in<T>(list: &[T], is_it: impl Fn(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::tests::summary;

    fn filter(on: &[Moment]) -> Filter {
        Filter {
            on: on.to_vec(),
            ..Filter::default()
        }
    }

    #[test]
    fn a_filter_accepts_what_it_does_not_restrict() {
        let ended = summary();
        let accepts = |filter: &Filter| filter.accepts(Moment::Ended, &ended);
        assert!(accepts(&filter(&[Moment::Ended])));
        assert!(!accepts(&filter(&[Moment::Started])));
        for (matching, filter) in [
            (
                true,
                Filter {
                    chains: vec!["other".into(), "kubernetes".into()],
                    ..filter(&Moment::ALL)
                },
            ),
            (
                false,
                Filter {
                    chains: vec!["other".into()],
                    ..filter(&Moment::ALL)
                },
            ),
            (
                true,
                Filter {
                    severities: vec![Severity::Critical],
                    ..filter(&Moment::ALL)
                },
            ),
            (
                false,
                Filter {
                    severities: vec![Severity::High, Severity::Low],
                    ..filter(&Moment::ALL)
                },
            ),
            (
                true,
                Filter {
                    outcomes: vec![Outcome::Completed],
                    ..filter(&Moment::ALL)
                },
            ),
            (
                false,
                Filter {
                    outcomes: vec![Outcome::Failed, Outcome::TimedOut],
                    ..filter(&Moment::ALL)
                },
            ),
        ] {
            assert_eq!(accepts(&filter), matching, "{filter:?}");
        }
    }

    #[test]
    fn the_outcome_restricts_ends_only() {
        let running = Summary {
            outcome: None,
            ..summary()
        };
        let failures = Filter {
            outcomes: vec![Outcome::Failed],
            ..filter(&Moment::ALL)
        };
        assert!(failures.accepts(Moment::Started, &running));
    }

    #[test]
    fn a_session_gets_a_row_for_each_notification_that_its_chain_permits() {
        let of_chain = Filter {
            chains: vec!["kubernetes".into()],
            ..filter(&[Moment::Ended])
        };
        let filters = Filters(vec![
            NamedFilter {
                name: "all".into(),
                filter: filter(&Moment::ALL),
            },
            NamedFilter {
                name: "one".into(),
                filter: of_chain,
            },
        ]);
        let names = |planned: Vec<Planned>| {
            planned
                .into_iter()
                .map(|each| format!("{} {}", each.route, each.moment.as_str()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(filters.of_session("kubernetes")),
            ["all started", "all ended", "one ended", "all covered"]
        );
        assert_eq!(
            names(filters.of_session("other")),
            ["all started", "all ended", "all covered"],
            "a covered alert has the chain of the earlier session"
        );
        assert_eq!(
            names(filters.of_answer("all")),
            ["all started", "all ended"]
        );
        assert_eq!(
            names(filters.of_answer("one")),
            ["one ended"],
            "a question in a thread is answered there, whatever its chain"
        );
        assert_eq!(names(filters.of_answer("gone")), [""; 0]);
        assert_eq!(
            names(filters.of_dead_letter()),
            ["all ended"],
            "an alert without a session has no chain"
        );
    }
}
