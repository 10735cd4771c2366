//! Reads the report about one alert and its investigation in one transaction.

mod model_calls;
mod read;
