//! The standard `process_*` metrics, read from `/proc`. Systems other than Linux have none.
//!
//! The crate `metrics-process` makes a gauge of the CPU time, which is a counter, and adds series: it is not used.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};

use super::names::{Kind, Metric, all};

/// The current values in the text format of Prometheus; empty where `/proc` cannot be read.
pub(super) fn render() -> String {
    read().map(show).unwrap_or_default()
}

/// The metrics that `/proc` has now, each with its value, if the system has one.
fn read() -> Option<[(&'static str, Option<f64>); 5]> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    // Reading the directory opens one more descriptor.
    let open = fs::read_dir("/proc/self/fd")
        .ok()?
        .count()
        .saturating_sub(1);
    let (cpu_seconds, start_ticks, pages) = parse_stat(&stat)?;
    let ticks = number(&clock_ticks_per_second().to_string())?;
    let start_seconds = number_after(&system, "btime ")? + start_ticks / ticks;
    let resident_bytes = pages * number(&page_size().to_string())?;
    Some([
        ("process_cpu_seconds_total", Some(cpu_seconds / ticks)),
        ("process_resident_memory_bytes", Some(resident_bytes)),
        ("process_open_fds", number(&open.to_string())),
        ("process_max_fds", number_after(&limits, "Max open files")),
        ("process_start_time_seconds", Some(start_seconds)),
    ])
}

/// CPU time and start time in clock ticks, and resident pages: proc(5). The second field, the name of the program, may
/// contain spaces and brackets.
fn parse_stat(stat: &str) -> Option<(f64, f64, f64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number_in_manual: usize| number(fields.get(number_in_manual - 3)?);
    Some((field(14)? + field(15)?, field(22)?, field(24)?))
}

/// The number that follows `start` in the line that begins with `start`.
fn number_after(text: &str, start: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(start))?;
    number(rest.split_whitespace().next()?)
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn show(stats: [(&'static str, Option<f64>); 5]) -> String {
    let mut out = String::new();
    for (name, value) in stats {
        if let (Some(value), Some(Metric { kind, help, .. })) =
            (value, all().find(|metric| metric.name == name))
        {
            let is_counter = matches!(kind, Kind::Counter);
            let kind = if is_counter { "counter" } else { "gauge" };
            out += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 9 8 7 6 250 50 0 0 20 0 4 0 123456 999 77 18446744073709551615";
        assert_eq!(parse_stat(stat), Some((300.0, 123_456.0, 77.0)));
        assert_eq!(parse_stat("7 (a) S 1"), None);
        assert_eq!(
            number_after("cpu 1\nbtime 1700000000\n", "btime "),
            Some(1_700_000_000.0)
        );
        assert_eq!(
            number_after(
                "Max open files            1024     524288    files\n",
                "Max open files"
            ),
            Some(1024.0)
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_uses_memory_and_has_started_in_the_past() {
        let stats = read().unwrap();
        let [_, (_, resident_bytes), (_, open_fds), _, (_, start_seconds)] = stats;
        assert!(
            resident_bytes.unwrap() > 1_000_000.0 && open_fds.unwrap() >= 3.0,
            "{stats:?}"
        );
        let now = number(&chrono::Utc::now().timestamp().to_string()).unwrap();
        assert!(
            (now - 3_600.0..=now + 1.0).contains(&start_seconds.unwrap()),
            "{stats:?}"
        );
        assert!(render().contains("# TYPE process_cpu_seconds_total counter\n"));
    }
}
