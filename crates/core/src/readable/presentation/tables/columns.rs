//! Series as columns: objects with an array of times and one of values, and the matrix of Prometheus.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::cells::{ADDED, Table, added_time, cell, column_name, range, time};
use super::rows::utc;
use crate::readable::presentation::json::{Member, Node, plain_string};

/// A larger table than so many cells for each value has too many gaps.
const MAX_CELLS_PER_VALUE: usize = 3;

/// The label rows, the times and the values of several series.
struct Columns<'a> {
    /// The key of the times.
    time_name: &'a str,
    /// The key of the values.
    value_name: &'a str,
    /// The name of each label, with its value in each series; `None` for a series without it.
    labels: Vec<Label<'a>>,
    series: Vec<Series<'a>>,
}

struct Label<'a> {
    name: &'a str,
    values: Vec<Option<String>>,
}

/// Times with their values, in the order of the result.
struct Series<'a> {
    times: Vec<&'a str>,
    values: Vec<String>,
}

/// Objects with an array of times, an array of values of the same length, and scalars. Series without values count.
pub(super) fn of_series(items: &[Node<'_>]) -> Option<Table> {
    let Keys { times, values } = items.iter().find_map(keys)?;
    let mut columns = Columns {
        time_name: column_name(times)?,
        value_name: column_name(values)?,
        labels: Vec::new(),
        series: Vec::new(),
    };
    for (index, item) in items.iter().enumerate() {
        for member in item.members()? {
            if member.key != times && member.key != values {
                columns.label(
                    member,
                    &Place {
                        index,
                        count: items.len(),
                    },
                )?;
            }
        }
        let own_times = item.get(times)?.items()?.iter();
        let own_times: Option<Vec<&str>> = own_times.map(Node::scalar).collect();
        let own_values = item.get(values)?.items()?;
        let are_scalars = own_values.iter().all(|value| value.scalar().is_some());
        are_scalars.then_some(())?;
        columns.series.push(Series {
            times: own_times?,
            values: own_values.iter().map(cell).collect(),
        });
    }
    if columns.series.len() > 1 {
        table(&columns)
    } else {
        None
    }
}

/// The keys of the two arrays of a series.
struct Keys<'a> {
    times: &'a str,
    values: &'a str,
}

/// The keys of a series with at least two times; `None` when its arrays are not one of times and one of values.
fn keys<'a>(item: &Node<'a>) -> Option<Keys<'a>> {
    let members = item.members()?;
    let arrays: Vec<&Member<'a>> = members
        .iter()
        .filter(|member| member.value.items().is_some())
        .collect();
    let [one, other] = arrays.as_slice() else {
        return None;
    };
    match (has_times(one), has_times(other)) {
        (true, false) => Some(Keys {
            times: one.key,
            values: other.key,
        }),
        (false, true) => Some(Keys {
            times: other.key,
            values: one.key,
        }),
        (true, true) | (false, false) => None,
    }
}

fn has_times(member: &Member<'_>) -> bool {
    let name = plain_string(member.key).unwrap_or_default();
    let items = member.value.items().unwrap_or_default();
    items.len() >= 2
        && items
            .iter()
            .all(|item| item.scalar().is_some_and(|text| time(name, text).is_some()))
}

/// The series that a label belongs to.
struct Place {
    index: usize,
    /// Series in total.
    count: usize,
}

impl<'a> Columns<'a> {
    /// Adds a label to a series; `None` when it cannot be one.
    fn label(&mut self, member: &Member<'a>, place: &Place) -> Option<()> {
        let name = column_name(member.key)?;
        member.value.scalar()?;
        let known = self.labels.iter().position(|known| known.name == name);
        let at = known.unwrap_or(self.labels.len());
        if known.is_none() {
            self.labels.push(Label {
                name,
                values: vec![None; place.count],
            });
        }
        let value = self.labels.get_mut(at)?.values.get_mut(place.index)?;
        if value.is_some() {
            return None;
        }
        *value = Some(cell(&member.value));
        Some(())
    }
}

/// The results of a range query: labels, and pairs of a time and a string.
pub(super) fn of_matrix(items: &[Node<'_>]) -> Option<Table> {
    let mut columns = Columns {
        time_name: "time",
        value_name: "value",
        labels: Vec::new(),
        series: Vec::new(),
    };
    for (index, item) in items.iter().enumerate() {
        if item.members()?.len() != 2 {
            return None;
        }
        for member in item.get("\"metric\"")?.members()? {
            columns.label(
                member,
                &Place {
                    index,
                    count: items.len(),
                },
            )?;
        }
        let mut series = Series {
            times: Vec::new(),
            values: Vec::new(),
        };
        for pair in item.get("\"values\"")?.items()? {
            let [time, value] = pair.items()? else {
                return None;
            };
            let value = plain_string(value.scalar()?).filter(|value| !value.is_empty())?;
            series.times.push(time.scalar()?);
            series.values.push(value.to_owned());
        }
        columns.series.push(series);
    }
    if items.is_empty() {
        None
    } else {
        table(&columns)
    }
}

/// The table, if each series has its times in one direction.
fn table(columns: &Columns<'_>) -> Option<Table> {
    let count = columns.series.len();
    let lengths_agree = columns
        .series
        .iter()
        .all(|series| series.times.len() == series.values.len());
    if !lengths_agree {
        return None;
    }
    let times = rows(&columns.series)?;
    let all: usize = columns.series.iter().map(|series| series.times.len()).sum();
    if times.len() * count > all * MAX_CELLS_PER_VALUE {
        return None;
    }
    let row_of: BTreeMap<&str, usize> = times.iter().copied().zip(0..).collect();
    let mut cells: Vec<Vec<&str>> = vec![vec![""; count]; times.len()];
    for (index, series) in columns.series.iter().enumerate() {
        for (time, value) in series.times.iter().zip(&series.values) {
            let row = cells.get_mut(*row_of.get(time)?)?;
            *row.get_mut(index)? = value;
        }
    }
    let adds_time = times
        .iter()
        .all(|text| added_time(columns.time_name, text).is_some());
    let gap = if adds_time { "\t" } else { "" };
    let mut lines = Vec::new();
    for label in &columns.labels {
        let values: Vec<&str> = label
            .values
            .iter()
            .map(|value| value.as_deref().unwrap_or_default())
            .collect();
        lines.push(format!("{}{gap}\t{}", label.name, values.join("\t")));
    }
    let added = if adds_time {
        format!("\t{ADDED}")
    } else {
        String::new()
    };
    let names = vec![columns.value_name; count].join("\t");
    lines.push(format!("{}{added}\t{names}", columns.time_name));
    for (text, row) in times.iter().zip(&cells) {
        let shown = plain_string(text).unwrap_or(text);
        let added = match added_time(columns.time_name, text) {
            Some(at) if adds_time => format!("\t{}", utc(at)),
            Some(_) | None => String::new(),
        };
        lines.push(format!("{shown}{added}\t{}", row.join("\t")));
    }
    let read: Vec<_> = times
        .iter()
        .map(|text| time(columns.time_name, text))
        .collect();
    let added = if adds_time { "; utc is added" } else { "" };
    Some(Table {
        text: lines.join("\n"),
        about: format!(
            "{count} series as columns, {} rows, tab-separated{added}",
            times.len()
        ),
        range: range(&read),
    })
}

/// The times of all series in one order; `None` when a series has another order, or has a time twice.
fn rows<'a>(series: &[Series<'a>]) -> Option<Vec<&'a str>> {
    let first = &series.first()?.times;
    let are_same = series.iter().all(|other| other.times == *first);
    let mut all: Vec<&str> = if are_same {
        first.clone()
    } else {
        series
            .iter()
            .flat_map(|series| series.times.iter().copied())
            .collect()
    };
    let is_descending = series.iter().any(|series| match series.times.as_slice() {
        [one, two, ..] => compare(one, two) == Ordering::Greater,
        [_] | [] => false,
    });
    let order = |one: &&str, two: &&str| {
        if is_descending {
            compare(two, one)
        } else {
            compare(one, two)
        }
    };
    let is_ordered = series.iter().all(|series| {
        series
            .times
            .is_sorted_by(|one, two| order(one, two) == Ordering::Less)
    });
    if !is_ordered {
        return None;
    }
    all.sort_by(order);
    all.dedup();
    // Two texts for one time would be two rows whose order is unclear.
    let is_clear = all.is_sorted_by(|one, two| order(one, two) == Ordering::Less);
    is_clear.then_some(all)
}

/// Numbers by their value, other texts by their bytes.
fn compare(one: &str, two: &str) -> Ordering {
    match (one.parse::<f64>(), two.parse::<f64>()) {
        (Ok(one), Ok(two)) => one.total_cmp(&two),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => one.cmp(two),
    }
}
