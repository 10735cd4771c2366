//! Statements from `.sql` files that Diesel prepares once per connection.
//!
//! `sql_query` and batch inserts are parsed again on every call; a type with a static query id is not. So each file
//! has one type, and that type one text: the cache key is the type. A file uses `$1`, `$2`, … first in that order;
//! later uses of the same number stay text and refer back.

use diesel::pg::Pg;
use diesel::query_builder::AstPass;
use diesel::result::{Error::QueryBuilderError, QueryResult};
use diesel::serialize::ToSql;
use diesel::sql_types::HasSqlType;

/// A type that is one `.sql` file with its binds.
pub(super) trait Statement {
    /// The text of the file.
    const SQL: &'static str;
    /// How many parameters it has.
    #[cfg(test)]
    const BINDS: usize;

    /// Pushes every parameter, in order. Runs several times per call: no side effects.
    fn bind<'b>(&'b self, to: &mut Binds<'_, 'b>) -> QueryResult<()>;

    /// Emits the text with the binds between.
    fn walk<'b>(&'b self, out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let mut binds = Binds { out, rest: Self::SQL, count: 0 };
        self.bind(&mut binds)?;
        binds.out.push_sql(binds.rest);
        Ok(())
    }
}

/// The way of one statement into Diesel: text up to the next parameter, the parameter, and so on.
pub(super) struct Binds<'r, 'b> {
    out: AstPass<'r, 'b, Pg>,
    rest: &'static str,
    count: usize,
}

impl<'b> Binds<'_, 'b> {
    /// Binds the next parameter. The SQL type is named because `Vec<u8>` could be two of them.
    pub(super) fn push<ST, T>(&mut self, value: &'b T) -> QueryResult<()>
    where
        Pg: HasSqlType<ST>,
        T: ToSql<ST, Pg> + ?Sized,
    {
        self.count += 1;
        let (before, after) = split_at_parameter(self.rest, self.count)
            .ok_or_else(|| QueryBuilderError(format!("no ${} left in the statement", self.count).into()))?;
        self.out.push_sql(before);
        // Writes the `$n` itself.
        self.out.push_bind_param::<ST, T>(value)?;
        self.rest = after;
        Ok(())
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

/// Makes a type the statement of a file: `statement!(Type, "file.sql", RowTypes, [SqlType: field, …])`.
macro_rules! statement {
    ($type:ty, $file:literal, $row:ty, [$($sql:ty: $($field:ident).+),+ $(,)?]) => {
        impl $crate::store::statement::Statement for $type {
            const SQL: &'static str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/sql/", $file));
            #[cfg(test)]
            const BINDS: usize = [$(stringify!($($field).+)),+].len();

            fn bind<'b>(
                &'b self,
                to: &mut $crate::store::statement::Binds<'_, 'b>,
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
                $crate::store::statement::Statement::walk(self, out)
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

    /// The numbers in the text in the order of their first use.
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

    fn agrees<S: Statement>() -> &'static str {
        assert_eq!(numbers(S::SQL), (1..=S::BINDS).collect::<Vec<_>>(), "in {}", S::SQL);
        S::SQL
    }

    #[test]
    fn every_statement_file_uses_its_binds_in_order_and_no_more() {
        let checked = BTreeSet::from([
            agrees::<crate::store::writes::cancel::RequestCancel>(),
            agrees::<crate::store::writes::checkpoint::Append>(),
            agrees::<crate::store::writes::claim::TakeOver>(),
            agrees::<crate::store::fence::ReadFence>(),
            agrees::<crate::store::writes::finish::Finish>(),
            agrees::<crate::store::reads::history::History>(),
            agrees::<crate::store::writes::open::Open>(),
            agrees::<crate::store::writes::open::ReadPlace>(),
            agrees::<crate::store::writes::prune::PreviewPrune>(),
            agrees::<crate::store::writes::prune::PruneAlerts>(),
            agrees::<crate::store::writes::prune::PruneSessions>(),
            agrees::<crate::store::writes::receive::GiveUp>(),
            agrees::<crate::store::writes::receive::Receive>(),
            agrees::<crate::store::writes::receive::Requeued>(),
            agrees::<crate::store::writes::receive::RefundAttempt>(),
            agrees::<crate::store::writes::receive::Waited>(),
            agrees::<crate::store::writes::renew::Release>(),
            agrees::<crate::store::writes::renew::Renew>(),
            agrees::<crate::store::writes::renew::RenewOne>(),
            agrees::<crate::store::reads::resolve::Resolve>(),
            agrees::<crate::store::sessions::Probe>(),
            agrees::<crate::store::writes::settle::ReadSettlementStatus>(),
            agrees::<crate::store::writes::settle::Settle>(),
            agrees::<crate::store::writes::step::Step>(),
            agrees::<crate::store::writes::sweep::FindForgotten>(),
            agrees::<crate::store::reads::thread::ReadAsked>(),
            agrees::<crate::store::reads::thread::ReadCalls>(),
            agrees::<crate::store::reads::thread::ReadThread>(),
        ]);
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/sql");
        let files: BTreeSet<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
            .collect();
        assert_eq!(checked, files.iter().map(String::as_str).collect());
    }

    #[test]
    fn a_parameter_is_found_by_its_whole_number() {
        assert_eq!(split_at_parameter("a $10 b $1 c", 1), Some(("a $10 b ", " c")));
        assert_eq!(split_at_parameter("a $10", 1), None);
    }
}
