//! `.ci/changed`, which maps changed files to tests: it knows every folder of the source, and the tests that it names
//! exist.

use super::*;

#[test]
fn every_folder_of_the_source_has_its_tests_in_ci_changed() {
    let cases = cases(&script());
    let folders: Vec<String> = ["crates", "src"]
        .into_iter()
        .flat_map(|tree| fs::read_dir(root().join(tree)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| {
            let below = path.strip_prefix(root()).unwrap();
            below.to_string_lossy().into_owned()
        })
        .collect();
    assert!(folders.len() > 10, "the folders are read: {folders:?}");
    assert_eq!(unknown_folders(&cases, &folders), Vec::<String>::new());
}

#[test]
fn every_part_that_ci_changed_names_has_tests() {
    let cases = cases(&script());
    assert!(cases.len() > 30, "the cases are read");
    assert_eq!(
        missing_parts(&cases, &Programs::read()),
        Vec::<String>::new()
    );
}

fn script() -> String {
    read(".ci/changed").unwrap().text
}

/// One case of the script: files, and the parts of programs that they can break.
struct Case {
    patterns: Vec<String>,
    parts: Vec<Part>,
}

/// A part of a program of tests: `adapters::store` of `it`, or the crate `store` of `lib`.
struct Part {
    program: String,
    filter: String,
}

/// The paths of all modules of each program.
struct Programs {
    lib: Vec<String>,
    architecture: Vec<String>,
    it: Vec<String>,
}

impl Programs {
    fn read() -> Self {
        let of = |tree: &str| {
            let paths: Vec<String> = sources(tree).into_iter().map(|file| file.path).collect();
            modules(&paths)
        };
        let crates = program().into_iter();
        Self {
            lib: crates
                .filter_map(|file| Some(Place::of(&file.path)?.package))
                .collect(),
            architecture: of("tests/architecture"),
            it: of("tests/it"),
        }
    }

    fn modules_of(&self, program: &str) -> Option<&[String]> {
        match program {
            "lib" => Some(&self.lib),
            "architecture" => Some(&self.architecture),
            "it" => Some(&self.it),
            _ => None,
        }
    }
}

fn modules(paths: &[String]) -> Vec<String> {
    paths
        .iter()
        .filter_map(|path| Some(Place::of(path)?.module))
        .collect()
}

/// The part of a program of tests that a file belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// As `.ci/changed` names it.
    pub(super) program: &'static str,
    /// The crate, without its prefix `tarsy-`, or `tarsy` for the package of the root.
    pub(super) package: String,
    /// The path of its module, without `crate::`.
    pub(super) module: String,
}

impl Place {
    pub(super) fn of(path: &str) -> Option<Self> {
        let trees = [
            ("src/", "lib"),
            ("tests/architecture/", "architecture"),
            ("tests/it/", "it"),
        ];
        let of_crate = path.strip_prefix("crates/").and_then(|below| {
            let (package, file) = below.split_once('/')?;
            Some(("lib", package, file.strip_prefix("src/")?))
        });
        let of_xtask = path
            .strip_prefix("xtask/src/")
            .map(|file| ("lib", "xtask", file));
        let of_root = || {
            trees
                .into_iter()
                .find_map(|(tree, program)| Some((program, "tarsy", path.strip_prefix(tree)?)))
        };
        let (program, package, below) = of_crate.or(of_xtask).or_else(of_root)?;
        let file = below.strip_suffix(".rs")?;
        let module = file.strip_suffix("/mod").unwrap_or(file);
        Some(Self {
            program,
            package: package.to_owned(),
            module: module.replace('/', "::"),
        })
    }
}

/// The cases of `broken_by`. A case is a list of patterns, a bracket, commands with `&&` between them, and two
/// semicolons.
fn cases(script: &str) -> Vec<Case> {
    let function = script
        .split("broken_by() {")
        .nth(1)
        .and_then(|rest| rest.split("\n}\n").next())
        .unwrap_or_default();
    function.split(";;").filter_map(case).collect()
}

fn case(clause: &str) -> Option<Case> {
    let clause = clause.rsplit("case $1 in").next()?;
    let (patterns, commands) = clause.split_once(')')?;
    let patterns = patterns
        .split('|')
        .map(|pattern| pattern.trim().to_owned())
        .collect();
    Some(Case {
        patterns,
        parts: commands.split("&&").flat_map(parts).collect(),
    })
}

/// The parts of one command, `tests <program> <part…>`. A part with a variable is made of the path of the changed file.
fn parts(command: &str) -> Vec<Part> {
    let mut words = command.split_whitespace();
    let (Some("tests"), Some(program)) = (words.next(), words.next()) else {
        return Vec::new();
    };
    let named = words.filter(|word| !word.contains('$'));
    named
        .map(|filter| Part {
            program: program.to_owned(),
            filter: filter.to_owned(),
        })
        .collect()
}

// ---------------------------------------------------------------- rules: one line a violation out

/// Folders without a case for all of their files.
fn unknown_folders(cases: &[Case], folders: &[String]) -> Vec<String> {
    let is_known = |folder: &&String| {
        let pattern = format!("{folder}/*");
        cases.iter().any(|case| case.patterns.contains(&pattern))
    };
    folders
        .iter()
        .filter(|folder| !is_known(folder))
        .map(|folder| format!("{folder} has no case"))
        .collect()
}

/// Parts that select no module. The last word of a part may be the beginning of a name.
fn missing_parts(cases: &[Case], programs: &Programs) -> Vec<String> {
    let mut found = Vec::new();
    for Case { patterns, parts } in cases {
        for Part { program, filter } in parts {
            let Some(modules) = programs.modules_of(program) else {
                found.push(format!("{}: no program {program}", patterns.join(" | ")));
                continue;
            };
            let is_known = |module: &String| match program.as_str() {
                "lib" => module == filter,
                _ => format!("{module}::").starts_with(filter.as_str()),
            };
            if filter != "all" && !modules.iter().any(is_known) {
                found.push(format!(
                    "{}: {program} has no part {filter}",
                    patterns.join(" | ")
                ));
            }
        }
    }
    found
}

// ---------------------------------------------------------------- the rules find what is planted

const SCRIPT: &str = r#"
tests() { for part in "${@:2}"; do printf '%s %s\n' "$1" "$part"; done; }
broken_by() {
  case $1 in
    src/*) tests architecture all ;;
  esac
  case $1 in
    crates/store/src/sql/* | crates/bus/*) tests lib store bus && tests it adapters::st ;;
    crates/store/*)
      tests lib stores && tests it adapters::store:: adapters::sto:: && tests its all ;;
    tests/it/*/*) tests architecture all && part=${1%.rs} && tests it "${part//\//::}" ;;
    *) tests lib all ;;
  esac
}
"#;

#[test]
fn a_folder_without_a_case_is_found() {
    let folders = ["crates/bus", "crates/store", "src/cli"].map(str::to_owned);
    assert_eq!(
        unknown_folders(&cases(SCRIPT), &folders),
        ["src/cli has no case"]
    );
    let only_a_part = SCRIPT.replace("crates/store/*)", "crates/store/src/writes/*)");
    assert_eq!(
        unknown_folders(&cases(&only_a_part), &folders),
        ["crates/store has no case", "src/cli has no case"]
    );
}

#[test]
fn a_part_without_a_test_is_found() {
    let programs = Programs {
        lib: ["store", "bus"].map(str::to_owned).to_vec(),
        architecture: Vec::new(),
        it: modules(&["tests/it/adapters/store/leases.rs".to_owned()]),
    };
    let expected = [
        "crates/store/*: lib has no part stores",
        "crates/store/*: it has no part adapters::sto::",
        "crates/store/*: no program its",
    ];
    assert_eq!(missing_parts(&cases(SCRIPT), &programs), expected);
}

#[test]
fn a_file_belongs_to_a_crate_and_a_module() {
    let place = Place::of("crates/store/src/writes/mod.rs").unwrap();
    let words = (place.program, place.package.as_str(), place.module.as_str());
    assert_eq!(words, ("lib", "store", "writes"));
    let place = Place::of("src/cli/args.rs").unwrap();
    let words = (place.program, place.package.as_str(), place.module.as_str());
    assert_eq!(words, ("lib", "tarsy", "cli::args"));
}
