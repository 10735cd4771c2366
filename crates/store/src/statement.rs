//! Statements in `.sql` files, which Diesel prepares once per connection.
//!
//! The server parses `sql_query` and batch inserts on every call, but a type with a static query id only once. So each
//! file has one type, and the type is the cache key. A file names each parameter after the field that it is taken from,
//! such as `$alert_id` or `$events.status`, and the server gets `$1`, `$2`, … in the order of their first use.

use std::mem;

use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::query_builder::AstPass;
use diesel::result::{Error::QueryBuilderError, QueryResult};
use diesel::serialize::ToSql;
use diesel::sql_types::{
    Array, BigInt, Binary, Bool, Double, HasSqlType, Integer, Jsonb, Nullable, SmallInt, Text,
    Timestamptz, Uuid as SqlUuid,
};
use serde_json::Value;
use uuid::Uuid;

/// A type that is one `.sql` file with the values of its parameters.
pub(super) trait Statement: Sized + 'static {
    /// The text of the file.
    const SQL: &'static str;
    /// The parameters that the file may name.
    const PARAMETERS: &'static [(&'static str, Bind<Self>)];

    /// The text of the file between its parameters. It is parsed once: Diesel walks a statement several times per call.
    fn parts() -> &'static Result<Parts<Self>, String>;

    /// Emits the text with the values between.
    fn walk<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let parts = Self::parts().as_ref();
        let Parts { before, last } =
            parts.map_err(|name| QueryBuilderError(format!("no field for ${name}").into()))?;
        for (text, bind) in before {
            out.push_sql(text);
            bind(self, &mut out)?;
        }
        out.push_sql(last);
        Ok(())
    }
}

/// Emits the value of one parameter. Runs several times per call: no side effects.
pub(super) type Bind<S> = for<'b> fn(&'b S, &mut AstPass<'_, 'b, Pg>) -> QueryResult<()>;

/// The text of a statement, split at the first use of each parameter.
pub(super) struct Parts<S> {
    /// The text before each parameter, and the parameter.
    before: Vec<(String, Bind<S>)>,
    last: String,
}

impl<S: Statement> Parts<S> {
    /// `Err` with the name of a parameter that is no field.
    pub(super) fn parse() -> Result<Self, String> {
        let mut pieces = S::SQL.split('$');
        let mut last = pieces.next().unwrap_or_default().to_owned();
        let mut before = Vec::new();
        let mut names = Vec::new();
        for piece in pieces {
            let name = name_at_start(piece);
            if let Some(index) = names.iter().position(|known| *known == name) {
                last += &format!("${}", index + 1);
            } else {
                let known = S::PARAMETERS.iter().find(|(known, _)| *known == name);
                let (_, bind) = known.ok_or(name)?;
                // Diesel writes the `$n`.
                before.push((mem::take(&mut last), *bind));
                names.push(name);
            }
            last += piece.strip_prefix(name).unwrap_or_default();
        }
        Ok(Self { before, last })
    }
}

fn name_at_start(text: &str) -> &str {
    let end = text.find(|c: char| !matches!(c, 'a'..='z' | '0'..='9' | '_' | '.'));
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// A type of values. The SQL type follows from it, so that no list has to state both.
pub(super) trait Parameter {
    type Sql: 'static;
}

macro_rules! parameters {
    ($($rust:ty => $sql:ty),+ $(,)?) => {
        $(impl Parameter for $rust {
            type Sql = $sql;
        })+
    };
}

parameters!(
    bool => Bool,
    i16 => SmallInt,
    i32 => Integer,
    i64 => BigInt,
    f64 => Double,
    &str => Text,
    String => Text,
    Uuid => SqlUuid,
    DateTime<Utc> => Timestamptz,
    Value => Jsonb,
    Vec<u8> => Binary,
    [u8; 32] => Binary,
);

impl<T: Parameter> Parameter for Option<T> {
    type Sql = Nullable<T::Sql>;
}

impl<T: Parameter> Parameter for Vec<T> {
    type Sql = Array<T::Sql>;
}

pub(super) fn bind<'b, T>(value: &'b T, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()>
where
    T: Parameter + ToSql<T::Sql, Pg>,
    Pg: HasSqlType<T::Sql>,
{
    out.push_bind_param::<T::Sql, T>(value)
}

/// Implements the statement of a file for a type: `statement!(Type, "file.sql" -> RowTypes, [field, group.field, …])`.
macro_rules! statement {
    ($type:ty, $file:literal -> $row:ty, [$($($field:tt).+),+ $(,)?]) => {
        impl $crate::statement::Statement for $type {
            const SQL: &'static str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/", $file));
            const PARAMETERS: &'static [(&'static str, $crate::statement::Bind<Self>)] = &[$((
                stringify!($($field).+),
                |of, out| $crate::statement::bind(&of.$($field).+, out),
            )),+];

            fn parts() -> &'static Result<$crate::statement::Parts<Self>, String> {
                static PARTS: std::sync::LazyLock<Result<$crate::statement::Parts<$type>, String>> =
                    std::sync::LazyLock::new($crate::statement::Parts::parse);
                &PARTS
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
    use std::sync::LazyLock;

    use diesel::debug_query;
    use diesel::query_builder::QueryFragment;

    use super::*;

    /// The text, after a check that it names exactly the fields.
    fn checked_sql<S: Statement>() -> &'static str {
        let named: BTreeSet<&str> = S::SQL.split('$').skip(1).map(name_at_start).collect();
        let fields: BTreeSet<&str> = S::PARAMETERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(named, fields, "in {}", S::SQL);
        assert!(S::parts().is_ok());
        S::SQL
    }

    #[test]
    fn every_statement_file_names_exactly_the_fields_of_its_type() {
        let checked = BTreeSet::from([
            checked_sql::<crate::reads::approvals::people::ListApprovals>(),
            checked_sql::<crate::reads::approvals::people::ReadCall>(),
            checked_sql::<crate::reads::approvals::people::ReadFreezes>(),
            checked_sql::<crate::reads::approvals::people::ReadOthers>(),
            checked_sql::<crate::reads::approvals::people::ReadResults>(),
            checked_sql::<crate::reads::approvals::people::ReadVotes>(),
            checked_sql::<crate::reads::approvals::waiting::CountRequests>(),
            checked_sql::<crate::reads::approvals::waiting::ReadOutcomes>(),
            checked_sql::<crate::reads::approvals::waiting::ReadRequestFacts>(),
            checked_sql::<crate::reads::approvals::waiting::ReadWaiting>(),
            checked_sql::<crate::reads::attempts::ReadAttempts>(),
            checked_sql::<crate::writes::approvals::checkpoint::AppendRequests>(),
            checked_sql::<crate::writes::approvals::freeze::RecordFreeze>(),
            checked_sql::<crate::writes::approvals::park::Park>(),
            checked_sql::<crate::writes::approvals::vote::RecordVote>(),
            checked_sql::<crate::writes::cancel::RequestCancel>(),
            checked_sql::<crate::writes::checkpoint::Append>(),
            checked_sql::<crate::writes::claim::FindInherited>(),
            checked_sql::<crate::writes::claim::TakeOver>(),
            checked_sql::<crate::fence::ReadFence>(),
            checked_sql::<crate::writes::finish::Finish>(),
            checked_sql::<crate::reads::event_search::SearchEvents>(),
            checked_sql::<crate::reads::history::Excerpts>(),
            checked_sql::<crate::reads::history::History>(),
            checked_sql::<crate::writes::open::Open>(),
            checked_sql::<crate::writes::open::ReadDisposition>(),
            checked_sql::<crate::writes::prune::PreviewPrune>(),
            checked_sql::<crate::writes::prune::PruneAlerts>(),
            checked_sql::<crate::writes::prune::PruneApprovals>(),
            checked_sql::<crate::writes::prune::PruneSessions>(),
            checked_sql::<crate::writes::prune::PruneSkillTexts>(),
            checked_sql::<crate::writes::skill_texts::KeepSkillTexts>(),
            checked_sql::<crate::writes::skill_texts::ReadSkillTexts>(),
            checked_sql::<crate::writes::receive::GiveUp>(),
            checked_sql::<crate::writes::receive::Receive>(),
            checked_sql::<crate::writes::receive::Requeued>(),
            checked_sql::<crate::writes::receive::RefundAttempt>(),
            checked_sql::<crate::writes::receive::Waited>(),
            checked_sql::<crate::writes::renew::Release>(),
            checked_sql::<crate::writes::renew::Renew>(),
            checked_sql::<crate::writes::renew::RenewOne>(),
            checked_sql::<crate::reads::gaps::ReadTools>(),
            checked_sql::<crate::reads::gaps::ReadUnknown>(),
            checked_sql::<crate::reads::gaps::ReadUnseen>(),
            checked_sql::<crate::verdicts::record::WriteVerdict>(),
            checked_sql::<crate::verdicts::export::ExportVerdicts>(),
            checked_sql::<crate::reads::past::PastSame>(),
            checked_sql::<crate::reads::past::PastWords>(),
            checked_sql::<crate::reads::past::ReadPastReport>(),
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
            checked_sql::<crate::reads::thread::FindOfChat>(),
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

    struct Sample {
        a: i32,
        of: Group,
    }

    struct Group {
        b: i32,
    }

    impl Statement for Sample {
        const SQL: &'static str = "SELECT $of.b::integer, $a, $of.b, ($a)[1]";
        const PARAMETERS: &'static [(&'static str, Bind<Self>)] = &[
            ("a", |of, out| bind(&of.a, out)),
            ("of.b", |of, out| bind(&of.of.b, out)),
        ];

        fn parts() -> &'static Result<Parts<Self>, String> {
            static PARTS: LazyLock<Result<Parts<Sample>, String>> = LazyLock::new(Parts::parse);
            &PARTS
        }
    }

    impl QueryFragment<Pg> for Sample {
        fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
            self.walk(out)
        }
    }

    #[test]
    fn a_named_parameter_has_one_number_and_the_value_of_its_field() {
        let sample = Sample {
            a: 1,
            of: Group { b: 2 },
        };
        assert_eq!(
            debug_query::<Pg, _>(&sample).to_string(),
            "SELECT $1::integer, $2, $1, ($2)[1] -- binds: [2, 1]"
        );
    }
}
