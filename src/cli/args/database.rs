//! Arguments of the commands that maintain the database.

use std::time::Duration;

use clap::Args;

use super::values::duration;
use tarsy_config::Retention;

/// Arguments of `migrate`.
#[derive(Args, Clone, Copy, Debug)]
pub struct MigrateArgs {
    /// How long a migration waits for tables that are in use
    #[arg(long = "patience", value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub lock_timeout: Duration,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `prune`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PruneArgs {
    /// Age of every investigation and alert [default: the ages of the configuration]
    #[arg(long, value_name = "AGE", value_parser = duration)]
    pub older_than: Option<Duration>,
    /// Age of investigations with all their rows
    #[arg(long, value_name = "AGE", value_parser = duration)]
    pub sessions: Option<Duration>,
    /// Age of alerts that opened no investigation
    #[arg(long, value_name = "AGE", value_parser = duration)]
    pub alerts: Option<Duration>,
    /// Age of the journals of investigations that are kept longer
    #[arg(long, value_name = "AGE", value_parser = duration)]
    pub entries: Option<Duration>,
    /// Age of their records of model calls
    #[arg(long, value_name = "AGE", value_parser = duration)]
    pub llm_interactions: Option<Duration>,
    /// Age of their records of tool calls
    #[arg(long, value_name = "AGE", value_parser = duration)]
    pub tool_interactions: Option<Duration>,
    /// Age of requests for approvals, and of the votes of people, that are kept longer than their investigation
    #[arg(long, value_name = "AGE", value_parser = duration)]
    pub approvals: Option<Duration>,
    /// Count the rows and delete none
    #[arg(long)]
    pub dry_run: bool,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}

impl PruneArgs {
    /// The ages of the command line, else the configured ones.
    pub fn over(&self, configured: Retention) -> Retention {
        let configured = self.older_than.map_or(configured, Retention::of_all);
        Retention {
            sessions: self.sessions.or(configured.sessions),
            alerts: self.alerts.or(configured.alerts),
            entries: self.entries.or(configured.entries),
            llm_interactions: self.llm_interactions.or(configured.llm_interactions),
            tool_interactions: self.tool_interactions.or(configured.tool_interactions),
            approvals: self.approvals.or(configured.approvals),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_on_the_command_line_overrides_the_configured_one() {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        let configured = Retention {
            entries: Some(days(3)),
            ..Retention::of_all(days(9))
        };
        assert_eq!(PruneArgs::default().over(configured), configured);
        let older_than = PruneArgs {
            older_than: Some(days(5)),
            ..PruneArgs::default()
        };
        assert_eq!(older_than.over(configured), Retention::of_all(days(5)));
        let alerts = PruneArgs {
            alerts: Some(days(1)),
            ..PruneArgs::default()
        };
        assert_eq!(
            alerts.over(configured),
            Retention {
                alerts: Some(days(1)),
                ..configured
            }
        );
    }
}
