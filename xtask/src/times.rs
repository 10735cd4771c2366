//! The report of `./dev test --times`: the slowest tests, and the times by folder.
//!
//! `.ci/test-runner` writes both inputs, a line for each test and for each folder, with tabs between the fields.

use std::collections::BTreeMap;

use anyhow::Context;

const SLOWEST: usize = 60;

struct Test<'t> {
    seconds: f64,
    program: &'t str,
    name: &'t str,
}

impl Test<'_> {
    /// The program and the first module; in `it`, whose modules are large, the second one, too.
    fn folder(&self) -> String {
        let mut modules = self.name.split("::");
        let first = modules.next().unwrap_or_default();
        match (self.program, modules.next()) {
            ("it", Some(second)) => format!("it {first}::{second}"),
            (program, _) => format!("{program} {first}"),
        }
    }
}

#[derive(Default)]
struct Sum {
    seconds: f64,
    tests: u32,
}

/// The lines of the report. `results` has seconds, result, program and name; `processors` has processor seconds,
/// seconds and folder.
///
/// # Errors
/// When a line has another form.
pub fn report(results: &str, processors: &str) -> anyhow::Result<Vec<String>> {
    let tests = results.lines().map(test);
    let mut tests = tests.collect::<anyhow::Result<Vec<_>>>()?;
    tests.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.name.cmp(b.name)));
    let mut lines = vec![format!("The {SLOWEST} slowest tests, in seconds:")];
    for test in tests.iter().take(SLOWEST) {
        lines.push(format!(
            "{:8.2}  {} {}",
            test.seconds, test.program, test.name
        ));
    }
    lines.push("By folder: seconds of its tests, and their number:".to_owned());
    lines.extend(by_folder(&tests));
    lines.push(
        "By folder, each run alone: processor seconds of this machine, and seconds:".to_owned(),
    );
    lines.extend(by_processor(processors)?);
    Ok(lines)
}

fn test(line: &str) -> anyhow::Result<Test<'_>> {
    let mut fields = line.split('\t');
    let (Some(seconds), Some(_result), Some(program), Some(name)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        anyhow::bail!("no result of a test: {line:?}");
    };
    Ok(Test {
        seconds: number(seconds)?,
        program,
        name,
    })
}

fn by_folder(tests: &[Test<'_>]) -> Vec<String> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for test in tests {
        let sum = sums.entry(test.folder()).or_default();
        sum.seconds += test.seconds;
        sum.tests += 1;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
    sums.into_iter()
        .map(|(folder, sum)| format!("{:8.1} {:5}  {folder}", sum.seconds, sum.tests))
        .collect()
}

fn by_processor(processors: &str) -> anyhow::Result<Vec<String>> {
    let mut all_busy = 0.0;
    let mut all_seconds = 0.0;
    let mut lines = Vec::new();
    for line in processors.lines() {
        let mut fields = line.splitn(3, '\t');
        let (Some(busy), Some(seconds), Some(folder)) =
            (fields.next(), fields.next(), fields.next())
        else {
            anyhow::bail!("no time of a folder: {line:?}");
        };
        let busy = number(busy)?;
        let seconds = number(seconds)?;
        all_busy += busy;
        all_seconds += seconds;
        lines.push(format!("{busy:8.0} {seconds:5.0}  {folder}"));
    }
    lines.push(format!("{all_busy:8.0} {all_seconds:5.0}  all"));
    Ok(lines)
}

fn number(text: &str) -> anyhow::Result<f64> {
    text.parse()
        .with_context(|| format!("{text:?} is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_sorts_tests_and_adds_up_folders() {
        let results = "0.5\tok\tit\tstore::leases::a\n2.25\tfailed\tit\tstore::leases::b\n1\tok\ttarsy_core\tmask::c\n";
        let expected = [
            "The 60 slowest tests, in seconds:",
            "    2.25  it store::leases::b",
            "    1.00  tarsy_core mask::c",
            "    0.50  it store::leases::a",
            "By folder: seconds of its tests, and their number:",
            "     2.8     2  it store::leases",
            "     1.0     1  tarsy_core mask",
            "By folder, each run alone: processor seconds of this machine, and seconds:",
            "      12     7  it store",
            "      30     9  it web",
            "      42    16  all",
        ];
        assert_eq!(
            report(results, "12\t7\tit store\n30\t9\tit web\n").unwrap(),
            expected
        );
    }

    #[test]
    fn only_the_slowest_tests_are_named() {
        let results: String = (0..70)
            .map(|n| format!("{n}\tok\tit\tmany::a::test_{n}\n"))
            .collect();
        let lines = report(&results, "").unwrap();
        let named = lines.iter().filter(|line| line.contains("test_"));
        assert_eq!(named.count(), SLOWEST);
    }

    #[test]
    fn a_line_of_another_form_is_an_error() {
        assert!(report("1\tok\n", "").is_err());
        assert!(report("soon\tok\tit\ta\n", "").is_err());
        assert!(report("", "1\n").is_err());
    }
}
