//! Statements in `.sql` files, which Diesel prepares once per connection.
//!
//! The server parses `sql_query` and batch inserts on every call, but a type with a static query id only once. So each
//! file has one type, and the type is the cache key. The first uses of `$1`, `$2`, … in a file are in that order; a
//! later use of the same number stays text and refers back.

use diesel::pg::Pg;
use diesel::query_builder::AstPass;
use diesel::result::{Error::QueryBuilderError, QueryResult};
use diesel::serialize::ToSql;
use diesel::sql_types::HasSqlType;

/// A type that is one `.sql` file with its binds.
pub(super) trait Statement {
    /// The text of the file.
    const SQL: &'static str;
    /// The number of its parameters.
    #[cfg(test)]
    const BINDS: usize;

    /// The text of the file between its parameters. It is split once: Diesel walks a statement several times per call.
    fn parts() -> &'static Parts;

    /// Pushes every parameter, in order. Runs several times per call: no side effects.
    fn bind<'b>(&'b self, to: &mut Binds<'_, 'b>) -> QueryResult<()>;

    /// Emits the text with the binds between.
    fn walk<'b>(&'b self, out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let Parts { before, last } = Self::parts();
        let mut binds = Binds {
            out,
            before: before.iter(),
            count: 0,
        };
        self.bind(&mut binds)?;
        binds.out.push_sql(last);
        Ok(())
    }
}

/// The text of a statement, split at the first use of each parameter.
pub(super) struct Parts {
    /// Before each parameter.
    before: Vec<&'static str>,
    /// After the last one.
    last: &'static str,
}

impl Parts {
    pub(super) fn of(sql: &'static str) -> Self {
        let (mut before, mut last) = (Vec::new(), sql);
        while let Some((text, rest)) = split_at_parameter(last, before.len() + 1) {
            before.push(text);
            last = rest;
        }
        Self { before, last }
    }
}

/// Emits one statement into Diesel: the text up to the next parameter, the parameter, and so on.
pub(super) struct Binds<'r, 'b> {
    out: AstPass<'r, 'b, Pg>,
    before: std::slice::Iter<'static, &'static str>,
    count: usize,
}

impl<'b> Binds<'_, 'b> {
    /// Binds the next parameter. The SQL type is explicit because `Vec<u8>` could be two of them.
    pub(super) fn push<ST, T>(&mut self, value: &'b T) -> QueryResult<()>
    where
        Pg: HasSqlType<ST>,
        T: ToSql<ST, Pg> + ?Sized,
    {
        self.count += 1;
        let before = self.before.next();
        let missing =
            || QueryBuilderError(format!("no ${} left in the statement", self.count).into());
        self.out.push_sql(before.ok_or_else(missing)?);
        // Diesel writes the `$n`.
        self.out.push_bind_param::<ST, T>(value)
    }
}

/// The text before and after the first `$number`; `$1` is not the beginning of `$10`.
fn split_at_parameter(sql: &'static str, number: usize) -> Option<(&'static str, &'static str)> {
    let name = format!("${number}");
    sql.match_indices(&name).find_map(|(at, _)| {
        let (before, from) = sql.split_at_checked(at)?;
        let after = from.strip_prefix(&name)?;
        (!after.starts_with(|next: char| next.is_ascii_digit())).then_some((before, after))
    })
}

/// Implements the statement of a file for a type: `statement!(Type, "file.sql", RowTypes, [SqlType: field, …])`.
macro_rules! statement {
    ($type:ty, $file:literal, $row:ty, [$($sql:ty: $($field:tt).+),+ $(,)?]) => {
        impl $crate::statement::Statement for $type {
            const SQL: &'static str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/", $file));
            #[cfg(test)]
            const BINDS: usize = [$(stringify!($($field).+)),+].len();

            fn parts() -> &'static $crate::statement::Parts {
                static PARTS: std::sync::LazyLock<$crate::statement::Parts> =
                    std::sync::LazyLock::new(|| $crate::statement::Parts::of(<$type as $crate::statement::Statement>::SQL));
                &PARTS
            }

            fn bind<'b>(
                &'b self,
                to: &mut $crate::statement::Binds<'_, 'b>,
            ) -> diesel::result::QueryResult<()> {
                $(to.push::<$sql, _>(&self.$($field).+)?;)+
                Ok(())
            }
        }

        impl diesel::query_builder::QueryId for $type {
            type QueryId = Self;
            const HAS_STATIC_QUERY_ID: bool = true;
        }

        impl diesel::query_builder::QueryFragment<diesel::pg::Pg> for $type {
            fn walk_ast<'b>(
                &'b self,
                out: diesel::query_builder::AstPass<'_, 'b, diesel::pg::Pg>,
            ) -> diesel::result::QueryResult<()> {
                $crate::statement::Statement::walk(self, out)
            }
        }

        impl diesel::query_builder::Query for $type {
            type SqlType = $row;
        }

        impl<C> diesel::RunQueryDsl<C> for &$type {}
    };
}

pub(super) use statement;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The parameter numbers in the text, in the order of their first use.
    fn numbers(sql: &str) -> Vec<usize> {
        let mut seen = Vec::new();
        for part in sql.split('$').skip(1) {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            let number = digits.parse().expect("a $ that is no parameter");
            if !seen.contains(&number) {
                seen.push(number);
            }
        }
        seen
    }

    fn checked_sql<S: Statement>() -> &'static str {
        assert_eq!(
            numbers(S::SQL),
            (1..=S::BINDS).collect::<Vec<_>>(),
            "in {}",
            S::SQL
        );
        S::SQL
    }

    #[test]
    fn every_statement_file_uses_exactly_its_parameters_in_order() {
        let checked = BTreeSet::from([
            checked_sql::<crate::reads::attempts::ReadAttempts>(),
            checked_sql::<crate::writes::cancel::RequestCancel>(),
            checked_sql::<crate::writes::checkpoint::Append>(),
            checked_sql::<crate::writes::claim::FindInherited>(),
            checked_sql::<crate::writes::claim::TakeOver>(),
            checked_sql::<crate::fence::ReadFence>(),
            checked_sql::<crate::writes::finish::Finish>(),
            checked_sql::<crate::reads::history::Excerpts>(),
            checked_sql::<crate::reads::history::History>(),
            checked_sql::<crate::writes::open::Open>(),
            checked_sql::<crate::writes::open::ReadDisposition>(),
            checked_sql::<crate::writes::prune::PreviewPrune>(),
            checked_sql::<crate::writes::prune::PruneAlerts>(),
            checked_sql::<crate::writes::prune::PruneSessions>(),
            checked_sql::<crate::writes::receive::GiveUp>(),
            checked_sql::<crate::writes::receive::Receive>(),
            checked_sql::<crate::writes::receive::Requeued>(),
            checked_sql::<crate::writes::receive::RefundAttempt>(),
            checked_sql::<crate::writes::receive::Waited>(),
            checked_sql::<crate::writes::renew::Release>(),
            checked_sql::<crate::writes::renew::Renew>(),
            checked_sql::<crate::writes::renew::RenewOne>(),
            checked_sql::<crate::reads::resolve::Resolve>(),
            checked_sql::<crate::reads::result::ReadResult>(),
            checked_sql::<crate::sessions::Probe>(),
            checked_sql::<crate::writes::notify::ClaimNotifications>(),
            checked_sql::<crate::writes::notify::CloseUnrouted>(),
            checked_sql::<crate::writes::notify::RecordNotification>(),
            checked_sql::<crate::writes::settle::ReadSettlementStatus>(),
            checked_sql::<crate::writes::settle::Settle>(),
            checked_sql::<crate::writes::step::Step>(),
            checked_sql::<crate::writes::sweep::FindOrphaned>(),
            checked_sql::<crate::reads::thread::ReadAsked>(),
            checked_sql::<crate::reads::thread::ReadCalls>(),
            checked_sql::<crate::reads::thread::ReadThread>(),
            checked_sql::<crate::writes::words::WordsBefore>(),
            checked_sql::<crate::writes::words::WordsComplete>(),
            checked_sql::<crate::writes::words::WordsTexts>(),
        ]);
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sql");
        let files: BTreeSet<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
            .collect();
        assert_eq!(checked, files.iter().map(String::as_str).collect());
    }

    #[test]
    fn a_parameter_is_found_by_its_whole_number() {
        assert_eq!(
            split_at_parameter("a $10 b $1 c", 1),
            Some(("a $10 b ", " c"))
        );
        assert_eq!(split_at_parameter("a $10", 1), None);
    }
}
