//! The outcomes of statements, parsed into enums.

/// Lets Diesel read a type of this crate that is a word in the database.
macro_rules! sql_word {
    ($type:ty) => {
        impl diesel::deserialize::FromSql<diesel::sql_types::Text, diesel::pg::Pg> for $type {
            fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
                let word = diesel::deserialize::FromSql::<diesel::sql_types::Text, diesel::pg::Pg>::from_sql(value)?;
                Ok(tarsy_reports::stored::parse(word)?)
            }
        }

        impl diesel::prelude::Queryable<diesel::sql_types::Text, diesel::pg::Pg> for $type {
            type Row = Self;

            fn build(row: Self) -> diesel::deserialize::Result<Self> {
                Ok(row)
            }
        }
    };
}

pub(crate) use sql_word;
