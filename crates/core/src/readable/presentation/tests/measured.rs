//! The bytes of recorded results before and after presentation, and the time for hostile texts.

use serde::Deserialize;

use crate::plan::Limits;
use crate::readable::cut::ReadBack;
use crate::readable::presentation::{Presentation, Shown, present};

/// A recorded result. `TARSY_RESULTS=<file>` names a JSON array of others.
#[derive(Deserialize)]
struct Recorded {
    #[serde(default)]
    incident: String,
    #[serde(default)]
    tool: String,
    text: String,
}

/// The bytes of results before and after presentation, whole and cut.
#[derive(Default)]
struct Sum {
    results: usize,
    before: usize,
    after: usize,
    cut_before: usize,
    cut_after: usize,
}

impl Sum {
    fn add(&mut self, whole: &str) -> Vec<Shown> {
        let limit = Limits::default().max_tool_result_tokens;
        let read_back = ReadBack::With("tarsy.read_result");
        let plain = present(whole, Presentation::default(), read_back);
        let presented = present(whole, Presentation::ALL, read_back);
        self.results += 1;
        self.before += plain.text.len();
        self.after += presented.text.len();
        let shown = presented.facts.clone().unwrap_or_default().shown;
        self.cut_before += plain.cut(limit, read_back).text.len();
        self.cut_after += presented.cut(limit, read_back).text.len();
        shown
    }

    fn print(&self, name: &str) {
        let percent =
            |before: usize, after: usize| 100.0 * (after as f64 / before.max(1) as f64 - 1.0);
        println!(
            "{name:<24} {:>4} results {:>8} → {:>8} bytes ({:+.0} %), cut {:>8} → {:>8} ({:+.0} %)",
            self.results,
            self.before,
            self.after,
            percent(self.before, self.after),
            self.cut_before,
            self.cut_after,
            percent(self.cut_before, self.cut_after),
        );
    }
}

/// The texts of the evidence of the built-in drills.
fn evidence() -> Vec<Recorded> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/drills");
    let mut all = Vec::new();
    let mut folders = vec![std::path::PathBuf::from(root)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|ending| ending == "txt" || ending == "json")
                && path.parent().unwrap().ends_with("evidence")
            {
                let drill = path.parent().unwrap().parent().unwrap();
                all.push(Recorded {
                    incident: drill.file_name().unwrap().to_string_lossy().into_owned(),
                    tool: path.file_stem().unwrap().to_string_lossy().into_owned(),
                    text: std::fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    all
}

#[test]
fn recorded_results_get_shorter() {
    let recorded = match std::env::var("TARSY_RESULTS") {
        Ok(path) => serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
        Err(_) => evidence(),
    };
    let mut incidents = std::collections::BTreeMap::<&str, Sum>::new();
    let mut all = Sum::default();
    for result in &recorded {
        let sum = incidents.entry(&result.incident).or_default();
        let before = sum.before;
        let after = sum.after;
        let shown = sum.add(&result.text);
        println!(
            "  {:<12} {:<32} {:>7} → {:>7} {shown:?}",
            result.incident,
            result.tool,
            sum.before - before,
            sum.after - after
        );
        all.add(&result.text);
    }
    for (name, sum) in &incidents {
        sum.print(name);
    }
    all.print("all");
    assert!(all.results > 0 && all.after <= all.before);
    if let Ok(folder) = std::env::var("TARSY_RESULTS_SHOWN") {
        for (number, result) in recorded.iter().enumerate() {
            let presented = present(&result.text, Presentation::ALL, ReadBack::No);
            let facts = presented.facts.unwrap_or_default();
            let text = format!("{facts:?}\n{}\n{}", facts.in_heading(None), presented.text);
            std::fs::write(format!("{folder}/{number}-{}.txt", result.tool), text).unwrap();
        }
    }
}
