//! What Linux tells of this process, in the names that every Prometheus client uses. Nothing on other systems.

use std::fmt::Write as _;
use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};

use super::names::{Kind, Metric, all};

/// Figures as they are at this moment.
#[derive(Debug, PartialEq)]
struct Figures {
    cpu_seconds: f64,
    start_seconds: f64,
    resident_bytes: f64,
    open_fds: f64,
    max_fds: Option<f64>,
}

/// The text form of Prometheus; empty where nothing is told.
pub(super) fn render() -> String {
    read().map(|figures| show(&figures)).unwrap_or_default()
}

fn read() -> Option<Figures> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    // Reading the folder opens one more.
    let open = fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
    let (cpu_seconds, start_ticks, pages) = of_stat(&stat)?;
    let ticks = number(&clock_ticks_per_second().to_string())?;
    Some(Figures {
        cpu_seconds: cpu_seconds / ticks,
        start_seconds: after(&system, "btime ")? + start_ticks / ticks,
        resident_bytes: pages * number(&page_size().to_string())?,
        open_fds: number(&open.to_string())?,
        max_fds: after(&limits, "Max open files"),
    })
}

/// Processor time and start in clock ticks, resident pages: proc(5). The second field may hold anything, even brackets.
fn of_stat(stat: &str) -> Option<(f64, f64, f64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number_in_manual: usize| number(fields.get(number_in_manual - 3)?);
    Some((field(14)? + field(15)?, field(22)?, field(24)?))
}

/// The first word behind `start` of the line that begins with it.
fn after(text: &str, start: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(start))?;
    number(rest.split_whitespace().next()?)
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn show(figures: &Figures) -> String {
    let mut out = String::new();
    for (name, value) in [
        ("process_cpu_seconds_total", Some(figures.cpu_seconds)),
        ("process_resident_memory_bytes", Some(figures.resident_bytes)),
        ("process_open_fds", Some(figures.open_fds)),
        ("process_max_fds", figures.max_fds),
        ("process_start_time_seconds", Some(figures.start_seconds)),
    ] {
        if let (Some(value), Some(Metric { kind, help, .. })) = (value, all().find(|metric| metric.name == name)) {
            let kind = if matches!(kind, Kind::Counter) { "counter" } else { "gauge" };
            // Writing to a String cannot fail.
            write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n").ok();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 9 8 7 6 250 50 0 0 20 0 4 0 123456 999 77 18446744073709551615";
        assert_eq!(of_stat(stat), Some((300.0, 123_456.0, 77.0)));
        assert_eq!(of_stat("7 (a) S 1"), None);
        assert_eq!(after("cpu 1\nbtime 1700000000\n", "btime "), Some(1_700_000_000.0));
        assert_eq!(after("Max open files            1024     524288    files\n", "Max open files"), Some(1024.0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_memory_and_began_in_the_past() {
        let figures = read().unwrap();
        assert!(figures.resident_bytes > 1_000_000.0 && figures.open_fds >= 3.0, "{figures:?}");
        let now = number(&chrono::Utc::now().timestamp().to_string()).unwrap();
        assert!(figures.start_seconds <= now + 1.0 && figures.start_seconds > now - 3_600.0, "{figures:?}");
        assert!(render().contains("# TYPE process_cpu_seconds_total counter\n"));
    }
}
