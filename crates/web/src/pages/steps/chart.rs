//! Series of Prometheus as drawings: a spark line in a row, a chart in the opened step. Coordinates come from finite
//! numbers only.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::shell::words::brief;
use tarsy_core::readable::results::Series;

/// Series of one chart.
const MAX_SERIES: usize = 8;
/// Points of one line; of more, every n-th is drawn.
const MAX_POINTS: usize = 500;

/// The width and height of a drawing in its own units, and the space around the line.
#[derive(Clone, Copy, Debug)]
struct Size {
    width: f64,
    height: f64,
}

const SPARK: Size = Size {
    width: 120.0,
    height: 22.0,
};
const CHART: Size = Size {
    width: 640.0,
    height: 110.0,
};
const SPACE: f64 = 3.0;

/// A finite point of a series.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: f64,
    value: f64,
}

/// The first series as a line; `None` if it has fewer than two points.
pub(super) fn spark(series: &[Series]) -> Option<Markup> {
    let lines = lines(series, 1);
    let bounds = Bounds::around(&lines)?;
    let points = bounds.points(lines.first()?, SPARK);
    Some(html! {
        svg.spark viewBox="0 0 120 22" width="120" height="22" aria-hidden="true" {
            polygon.area points={ (points) "118,21 2,21" } {}
            polyline points=(points) {}
        }
    })
}

/// A chart of all series, with what it shows in words.
pub(super) fn charts(series: &[Series]) -> Markup {
    let lines = lines(series, MAX_SERIES);
    let Some(bounds) = Bounds::around(&lines) else {
        return html! {};
    };
    html! {
        figure.chart {
            svg.big viewBox="0 0 640 110" height="110" preserveAspectRatio="none" aria-hidden="true" {
                @for (index, line) in lines.iter().enumerate() { polyline class={ "c" (index) } points=(bounds.points(line, CHART)) {} }
            }
            figcaption {
                @for each in series.iter().take(MAX_SERIES) { (brief(&each.name, 160)) " · " }
                @let shown = |value: f64| series.first().map_or_else(String::new, |first| first.shown(&value.to_string()));
                "min " (shown(bounds.least)) " · max " (shown(bounds.most)) " · " (clock(bounds.from)) " to " (clock(bounds.to))
                @if series.len() > MAX_SERIES { " · " (series.len() - MAX_SERIES) " more series" }
            }
        }
    }
}

fn lines(series: &[Series], most: usize) -> Vec<Vec<Point>> {
    series
        .iter()
        .take(most)
        .map(finite_points)
        .filter(|points| points.len() > 1)
        .collect()
}

fn finite_points(series: &Series) -> Vec<Point> {
    let mut points = Vec::new();
    for point in &series.points {
        let at = point.at;
        if let Ok(value) = point.value.parse::<f64>()
            && value.is_finite()
            && at.is_finite()
        {
            points.push(Point { at, value });
        }
    }
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    points.into_iter().step_by(step).collect()
}

/// The range of times and values.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    from: f64,
    to: f64,
    least: f64,
    most: f64,
}

impl Bounds {
    fn around(lines: &[Vec<Point>]) -> Option<Self> {
        let mut points = lines.iter().flatten();
        let first = points.next()?;
        let start = Self {
            from: first.at,
            to: first.at,
            least: first.value,
            most: first.value,
        };
        Some(points.fold(start, |bounds, point| Self {
            from: bounds.from.min(point.at),
            to: bounds.to.max(point.at),
            least: bounds.least.min(point.value),
            most: bounds.most.max(point.value),
        }))
    }

    /// `x,y x,y …` within a drawing.
    fn points(&self, line: &[Point], size: Size) -> String {
        let part = |value: f64, from: f64, to: f64| {
            if to > from {
                ((value - from) / (to - from)).clamp(0.0, 1.0)
            } else {
                0.5
            }
        };
        let mut out = String::new();
        for point in line {
            let x = 2.0 + part(point.at, self.from, self.to) * (size.width - 4.0);
            let y = size.height
                - SPACE
                - part(point.value, self.least, self.most) * (size.height - 2.0 * SPACE);
            // Writing to a string cannot fail.
            write!(out, "{x:.1},{y:.1} ").ok();
        }
        out
    }
}

fn clock(at: f64) -> String {
    let time: Option<DateTime<Utc>> = std::time::Duration::try_from_secs_f64(at)
        .ok()
        .and_then(|at| i64::try_from(at.as_secs()).ok())
        .and_then(|at| DateTime::from_timestamp(at, 0));
    time.map_or_else(String::new, |time| time.format("%H:%M").to_string())
}
