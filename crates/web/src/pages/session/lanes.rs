//! The chart of agents over time: one lane for each agent, and the gaps in which no worker ran the session.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::shell::words::brief;
use serde_json::Value;
use tarsy_core::readable::format;
use tarsy_core::readable::text::{Charset, one_line};
use tarsy_core::timeline::{EventType, TimelineEvent};

/// Agents with a lane.
const MAX_LANES: usize = 12;
/// Bars of one drawing: of more, the newest.
const MAX_BARS: usize = 200;
const LANE_HEIGHT: usize = 22;

/// The kind of work that a bar shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Model,
    Call,
    Cited,
    Analysis,
}

impl Work {
    fn word(self) -> &'static str {
        match self {
            Self::Model => "thinking",
            Self::Call | Self::Cited => "call",
            Self::Analysis => "analysis",
        }
    }
}

/// The contents of a drawing: agents and bars.
struct Drawn {
    agents: Vec<String>,
    /// The newest ones.
    bars: Vec<Bar>,
    /// The number of earlier bars.
    left_out: usize,
}

#[derive(Clone, Debug)]
struct Bar {
    lane: usize,
    number: u32,
    work: Work,
    name: String,
    /// Milliseconds since the start.
    from: u64,
    took: u64,
}

/// A time without an owner.
#[derive(Clone, Debug)]
struct Gap {
    from: u64,
    to: u64,
    label: String,
}

/// The drawing; empty without events. It is hidden from screen readers: the rows say all of it.
pub(super) fn lanes(
    events: &[TimelineEvent],
    cited: &BTreeSet<u32>,
    until: DateTime<Utc>,
) -> Markup {
    let Some(start) = events.first().map(|event| event.created_at) else {
        return html! {};
    };
    let end = events
        .last()
        .filter(|last| last.event_type.is_end())
        .map_or(until, |last| last.created_at);
    let total = format::millis(start, end).max(1);
    let Drawn {
        agents,
        bars,
        left_out,
    } = bars(events, cited, start);
    if agents.is_empty() {
        return html! {};
    }
    let height = agents.len() * LANE_HEIGHT;
    let gaps = gaps(events, start);
    let share = |ms: u64| percent(ms, total);
    html! {
        div.lanes.multi[agents.len() > 1] #lanes aria-hidden="true" {
            div.who { @for agent in &agents { span { (brief(agent, 24)) } } }
            svg height=(height + 20) {
                @for lane in 0..agents.len() {
                    @let y = lane * LANE_HEIGHT + 11;
                    line.lane x1="0" x2="100%" y1=(y) y2=(y) {}
                }
                @for gap in &gaps {
                    rect.gap x=(share(gap.from)) y="0" width=(share(gap.to.saturating_sub(gap.from))) height=(height) {}
                    // Words do not fit into a narrow gap.
                    @if (gap.to - gap.from) * 5 > total {
                        text.gapt x=(share((gap.from + gap.to) / 2)) y="15" { (gap.label) }
                    }
                }
                @for bar in &bars { (self::bar(bar, total)) }
                (ticks(total, height))
            }
            p.leg {
                @for (class, name) in [("think", "model"), ("tool", "call"), ("cited", "cited call"), ("final", "analysis"), ("gap", "no worker at work")] {
                    span class=(class) { i {} (name) }
                }
                @if left_out > 0 { span { "the newest " (MAX_BARS) " steps; " (left_out) " earlier ones are not drawn" } }
            }
        }
    }
}

fn bar(bar: &Bar, total: u64) -> Markup {
    let (class, inset) = match bar.work {
        Work::Model => ("think", 7),
        Work::Call => ("tool", 5),
        Work::Cited => ("tool cited", 5),
        Work::Analysis => ("final", 5),
    };
    let y = bar.lane * LANE_HEIGHT + inset;
    html! {
        a href={ "#" (bar.number) } tabindex="-1" {
            rect class=(class) x=(percent(bar.from, total)) y=(y) width=(percent(bar.took.max(total / 800), total)) height=(LANE_HEIGHT - 2 * inset) {
                title { "#" (bar.number) " " (bar.name) " " (format::took(bar.took)) }
            }
        }
    }
}

fn bars(events: &[TimelineEvent], cited: &BTreeSet<u32>, start: DateTime<Utc>) -> Drawn {
    let mut agents: Vec<String> = Vec::new();
    let mut bars = Vec::new();
    // Thinking and analysis of one answer have the duration of the same model call.
    let mut seen = HashSet::new();
    for event in events {
        let Some(agent) = &event.agent else { continue };
        let agent = one_line(agent, Charset::Unicode);
        let lane = match agents.iter().position(|known| *known == agent) {
            Some(lane) => lane,
            None if agents.len() >= MAX_LANES => continue,
            None => {
                agents.push(agent);
                agents.len() - 1
            }
        };
        let Some(work) = work(event, cited) else {
            continue;
        };
        let is_model = matches!(work, Work::Model | Work::Analysis);
        let is_first = !is_model || seen.insert((event.execution_id, event.iteration));
        let took = match event.metadata.get("took_ms").and_then(Value::as_u64) {
            Some(took) if is_first => took,
            Some(_) | None => 0,
        };
        let name = match event.metadata.get("tool_name").and_then(Value::as_str) {
            Some(tool) if !is_model => tool,
            Some(_) | None => work.word(),
        };
        let to = format::millis(start, event.created_at);
        bars.push(Bar {
            lane,
            number: event.session_seq,
            work,
            name: brief(name, 80),
            from: to.saturating_sub(took),
            took,
        });
    }
    let left_out = bars.len().saturating_sub(MAX_BARS);
    Drawn {
        agents,
        bars: bars.split_off(left_out),
        left_out,
    }
}

/// The work whose duration an event shows.
fn work(event: &TimelineEvent, cited: &BTreeSet<u32>) -> Option<Work> {
    let is = |event_type| event.event_type == event_type;
    if is(EventType::FinalAnalysis) {
        Some(Work::Analysis)
    } else if is(EventType::LlmThinking) {
        Some(Work::Model)
    } else if !is(EventType::ToolResult) && !is(EventType::CodeExecution) {
        None
    } else if cited.contains(&event.session_seq) {
        Some(Work::Cited)
    } else {
        Some(Work::Call)
    }
}

/// The gaps without a worker: from the last step of one that died or whose lease expired, to the takeover.
fn gaps(events: &[TimelineEvent], start: DateTime<Utc>) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for [before, resumed] in events.array_windows() {
        let reason = resumed.metadata.get("reason").and_then(Value::as_str);
        if resumed.event_type != EventType::SessionResumed || reason == Some("released") {
            continue;
        }
        let name = |key: &str| {
            let worker = resumed.metadata.get(key).and_then(Value::as_str);
            brief(worker.unwrap_or("a worker"), 24)
        };
        // For any other reason the worker may live: without the database it cannot renew its lease.
        let verb = match reason {
            Some("lease_expired" | "restarted") => "died",
            Some(_) | None => "lost its lease",
        };
        let from = format::millis(start, before.created_at);
        let to = format::millis(start, resumed.created_at);
        gaps.push(Gap {
            from,
            to: to.max(from),
            label: format!(
                "{} {verb}, {} takes over",
                name("previous_worker"),
                name("worker")
            ),
        });
    }
    gaps
}

fn ticks(total: u64, height: usize) -> Markup {
    let step = tick_step(total);
    // The last one is the total, whose words need room.
    let marks: Vec<u64> = (0..)
        .map(|index| index * step)
        .take_while(|at| *at < total * 17 / 20)
        .take(12)
        .collect();
    html! {
        @for (index, at) in marks.iter().enumerate() {
            @let x = percent(*at, total);
            line.tick x1=(x) x2=(x) y1=(height) y2=(height + 4) {}
            text class={ "tt" @if index % 2 == 1 { " opt" } } x=(x) y=(height + 16) text-anchor=(if *at == 0 { "start" } else { "middle" }) {
                (round(*at))
            }
        }
        text.tt x="100%" y=(height + 16) text-anchor="end" { (format::took(total)) }
    }
}

/// A duration between two steps of [`tick_step`], in the largest unit of which it has whole ones or halves.
fn round(ms: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    if ms == 0 {
        return "0 s".to_owned();
    }
    for (unit, word) in UNITS {
        if ms.is_multiple_of(unit) {
            return format!("{} {word}", ms / unit);
        }
        if ms.is_multiple_of(unit / 2) && (ms > unit || unit == 1_000) {
            return format!("{}.5 {word}", ms / unit);
        }
    }
    format!("{ms} ms")
}

/// A round duration of which at most eight are in the total.
fn tick_step(total: u64) -> u64 {
    const STEPS: [u64; 16] = [
        10, 50, 100, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
        1_800_000, 3_600_000, 14_400_000,
    ];
    STEPS
        .into_iter()
        .find(|step| total / step <= 8)
        .unwrap_or(total)
}

/// A share in per cent with two decimals.
fn percent(part: u64, total: u64) -> String {
    let hundredths = u128::from(part) * 10_000 / u128::from(total.max(1));
    let hundredths = hundredths.min(10_000);
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_says_whether_the_worker_died() {
        let timeline = include_str!("../../../../../tests/fixtures/timelines/oom_killed.jsonl");
        for (reason, expected) in [
            ("lease_expired", Some("w1 died, w2 takes over")),
            ("restarted", Some("w1 died, w2 takes over")),
            (
                "store_unavailable",
                Some("w1 lost its lease, w2 takes over"),
            ),
            ("released", None),
        ] {
            let events = timeline.lines().map(|line| {
                let mut event: TimelineEvent = serde_json::from_str(line).unwrap();
                if event.event_type == EventType::SessionResumed {
                    event.metadata["reason"] = reason.into();
                }
                event
            });
            let events: Vec<TimelineEvent> = events.collect();
            let gaps = gaps(&events, events[0].created_at);
            assert_eq!(
                gaps.first().map(|gap| gap.label.as_str()),
                expected,
                "{reason}"
            );
        }
    }

    #[test]
    fn shares_and_ticks_are_round() {
        assert_eq!(
            [percent(1, 3), percent(0, 9), percent(9, 9), percent(12, 9)],
            ["33.33%", "0.00%", "100.00%", "100.00%"]
        );
        for (total, step) in [
            (6_900, 1_000),
            (80, 10),
            (61_000, 10_000),
            (9_000_000, 1_800_000),
        ] {
            assert_eq!(tick_step(total), step);
        }
        let words = [
            0, 50, 500, 1_000, 1_500, 30_000, 60_000, 70_000, 90_000, 5_400_000, 14_400_000,
        ]
        .map(round);
        let expected = [
            "0 s", "50 ms", "0.5 s", "1 s", "1.5 s", "30 s", "1 min", "70 s", "1.5 min", "1.5 h",
            "4 h",
        ];
        assert_eq!(words, expected);
    }
}
