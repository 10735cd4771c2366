//! Tests over directories: what is read, what is left out and why, and when it is read again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::library::MAX_SKILLS;
use super::{Library, Skills, findings, missing_tools};
use tarsy_mask::Mask;

const MATTER: &str = "---\ndescription: Use it when pods restart\n---\n";

/// A directory with these files.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(directory.path(), path, text);
    }
    directory
}

fn write(directory: &Path, path: &str, text: &str) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn library(directory: &Path) -> Library {
    Library::read(&[directory.to_owned()], 2 * 1024 * 1024, &Mask::default())
}

/// Names and bodies of the skills.
fn read(library: &Library) -> Vec<String> {
    let skills = library.skills.iter().map(|known| &known.skill);
    skills
        .map(|skill| format!("{}: {}", skill.name, skill.body.text))
        .collect()
}

/// File names and reasons of what is left out.
fn left_out(library: &Library) -> Vec<String> {
    let faults = library.faults.iter();
    faults
        .map(|fault| {
            let name = fault.path.file_name().unwrap().to_string_lossy();
            format!("{name}: {}", fault.why)
        })
        .collect()
}

#[test]
fn a_folder_and_a_flat_file_are_skills_and_other_files_are_not() {
    let directory = directory(&[
        (
            "pg/SKILL.md",
            "---\nname: pg\ndescription: When pg is slow\nlicense: MIT\nallowed-tools: Bash\nmetadata: {team: db}\nodd: [1]\n---\n\nLook at locks.\n",
        ),
        ("pg/references/deep/queries.md", "select 1"),
        ("pg/scripts/run.sh", "rm -rf /"),
        ("k8s.md", &format!("{MATTER}Look at events.\r\n")),
        ("README.md", "no skill"),
        ("notes.txt", "no skill"),
        ("empty/notes.md", "no skill"),
        (".hidden.md", "no skill"),
        ("..data/other.md", "no skill"),
    ]);
    let library = library(directory.path());
    assert_eq!(
        read(&library),
        ["k8s: Look at events.", "pg: Look at locks."]
    );
    assert_eq!(left_out(&library), Vec::<String>::new());
    let pg = library.named("pg").unwrap();
    let files: Vec<_> = pg.skill.files.keys().collect();
    assert_eq!(files, ["deep/queries.md"]);
    assert_eq!(
        pg.shown,
        [
            ("license".to_owned(), "MIT".to_owned()),
            ("metadata".to_owned(), r#"{"team":"db"}"#.to_owned())
        ]
    );
}

#[test]
fn a_mounted_config_map_is_read_through_its_links() {
    let directory = directory(&[("..2026_11/pg.md", &format!("{MATTER}One."))]);
    let root = directory.path();
    symlink("..2026_11", root.join("..data")).unwrap();
    symlink("..data/pg.md", root.join("pg.md")).unwrap();
    assert_eq!(read(&library(root)), ["pg: One."]);
}

#[test]
fn a_link_out_of_the_directory_shows_nothing() {
    let outside = directory(&[("secret.md", &format!("{MATTER}Secret."))]);
    let directory = directory(&[("pg/SKILL.md", &format!("{MATTER}One."))]);
    let root = directory.path();
    symlink(outside.path().join("secret.md"), root.join("stolen.md")).unwrap();
    fs::create_dir(root.join("pg/references")).unwrap();
    symlink(
        outside.path().join("secret.md"),
        root.join("pg/references/a.md"),
    )
    .unwrap();
    symlink(outside.path(), root.join("pg/references/all")).unwrap();
    let library = library(root);
    assert_eq!(read(&library), ["pg: One."]);
    assert!(library.named("pg").unwrap().skill.files.is_empty());
    assert_eq!(
        left_out(&library),
        [
            "SKILL.md: references/a.md: it leads out of the directory, or to nothing",
            "stolen.md: it leads out of the directory, or to nothing",
        ]
    );
}

#[test]
fn a_broken_skill_is_left_out_with_the_reason() {
    let long = "a".repeat(65 * 1024);
    let directory = directory(&[
        ("UPPER.md", &format!("{MATTER}x")),
        ("big.md", &format!("{MATTER}{long}")),
        ("bare.md", "Look."),
        ("bodiless.md", MATTER),
        ("good.md", &format!("{MATTER}Good.")),
        (
            "long.md",
            &format!("---\ndescription: {}\n---\nx", "a".repeat(1_025)),
        ),
        ("other.md", "---\nname: another\ndescription: x\n---\nx"),
        ("speechless.md", "---\nname: speechless\n---\nx"),
        ("yaml.md", "---\ndescription: [\n---\nx"),
    ]);
    fs::write(directory.path().join("bytes.md"), [0xff, 0xfe]).unwrap();
    let library = library(directory.path());
    assert_eq!(read(&library), ["good: Good."]);
    let left_out = left_out(&library);
    let starts = [
        "UPPER.md: \"UPPER\" is no name of a skill: 1 to 64 of a-z, 0-9 and -",
        "bare.md: it has no front matter: the first line has to be ---",
        "big.md: it has more than 65536 bytes",
        "bodiless.md: it has no text behind its front matter",
        "bytes.md: it is no text in UTF-8",
        "long.md: its description has 1025 characters; accepted: at most 1024",
        "other.md: its front matter names it \"another\", and its file \"other\"",
        "speechless.md: its front matter has no description",
        "yaml.md: its front matter: line",
    ];
    assert_eq!(left_out.len(), starts.len(), "{left_out:#?}");
    for (fault, start) in left_out.iter().zip(starts) {
        assert!(fault.starts_with(start), "{fault}");
    }
}

#[test]
fn the_number_and_the_size_of_skills_and_files_have_bounds() {
    let many = tempfile::tempdir().unwrap();
    for number in 0..=MAX_SKILLS {
        write(
            many.path(),
            &format!("s{number:03}.md"),
            &format!("{MATTER}x"),
        );
    }
    let library = library(many.path());
    assert_eq!(library.skills.len(), MAX_SKILLS);
    assert_eq!(
        left_out(&library),
        ["s200.md: there are 200 skills already"]
    );

    let text = "a".repeat(200 * 1024);
    let large = directory(&[
        ("pg/SKILL.md", &format!("{MATTER}x")),
        ("pg/references/1.md", &text),
        ("pg/references/2.md", &text),
    ]);
    let directories = [large.path().to_owned()];
    let library = Library::read(&directories, 2 * 1024 * 1024, &Mask::default());
    assert_eq!(library.named("pg").unwrap().skill.files.len(), 1);
    let rest = 256 * 1024 - 200 * 1024;
    let expected = format!("SKILL.md: references/2.md: it has more than {rest} bytes");
    assert_eq!(left_out(&library), [expected]);

    let library = Library::read(&directories, 100 * 1024, &Mask::default());
    assert_eq!(
        left_out(&library),
        ["SKILL.md: all skills together would have more than 102400 bytes (skills.max_bytes)"]
    );
}

#[test]
fn the_first_of_two_skills_with_one_name_counts() {
    let one = directory(&[("pg.md", &format!("{MATTER}One."))]);
    let two = directory(&[("pg/SKILL.md", &format!("{MATTER}Two."))]);
    let gone = PathBuf::from("/nothing/here");
    let directories = [one.path().to_owned(), two.path().to_owned(), gone];
    let library = Library::read(&directories, 1024, &Mask::default());
    assert_eq!(read(&library), ["pg: One."]);
    let left_out = left_out(&library);
    assert!(
        left_out[0].starts_with("SKILL.md: a second skill pg: "),
        "{left_out:?}"
    );
    assert!(
        left_out[1].starts_with("here: No such file"),
        "{left_out:?}"
    );
}

#[test]
fn texts_are_masked_and_cleaned_before_a_model_may_see_them() {
    let text = format!("{MATTER}Use hunter2-secret.\u{202e}\u{7}");
    let directory = directory(&[("pg.md", &text)]);
    let mask = Mask::new(["hunter2-secret".to_owned()]);
    let library = Library::read(&[directory.path().to_owned()], 1024, &mask);
    let pg = library.named("pg").unwrap();
    let body = &pg.skill.body.text;
    assert!(
        !body.contains("hunter2") && !body.contains(['\u{202e}', '\u{7}']),
        "{body:?}"
    );
    assert!(pg.has_secret);
    assert!(findings(pg)[0].starts_with("it has a secret"));
}

#[test]
fn findings_name_what_a_writer_should_mend() {
    let directory = directory(&[
        (
            "pg/SKILL.md",
            "---\ndescription: Postgres\n---\nSee [a](references/a.md) and [b](./references/b.md#x).",
        ),
        ("pg/references/a.md", "x"),
        ("ok.md", &format!("{MATTER}See [x](https://example.com).")),
    ]);
    let library = library(directory.path());
    assert_eq!(
        findings(library.named("pg").unwrap()),
        [
            "its description does not say when it helps: a model chooses by the description alone",
            "it links to references/b.md, which does not exist or is left out",
        ]
    );
    assert_eq!(findings(library.named("ok").unwrap()), Vec::<String>::new());
}

#[test]
fn a_skill_may_name_a_tool_that_no_server_offers() {
    let text = "1. `pg.activity` shows who waits, `pg.locks {\"db\": \"shop\"}` what for, `pg__vacuum` ends it.\n\
                2. The label `pg.io/name`, `web.1`, pg.nothing and `pg.` are no tools. More in `k8s.get`.";
    let directory = directory(&[
        ("pg/SKILL.md", &format!("{MATTER}{text}")),
        ("pg/references/more.md", "`pg.bloat` and `pg.activity`"),
    ]);
    let library = library(directory.path());
    let offered = ["pg.activity".to_owned()].into();
    let offered = [("pg".to_owned(), offered)].into();
    let missing: Vec<String> = missing_tools(library.named("pg").unwrap(), &offered)
        .into_iter()
        .collect();
    assert_eq!(missing, ["pg.bloat", "pg.io", "pg.locks", "pg.vacuum"]);
}

#[tokio::test(start_paused = true)]
async fn changed_directories_are_read_again_after_a_minute() {
    let directory = directory(&[("pg.md", &format!("{MATTER}One."))]);
    let config = tarsy_config::Skills {
        directories: vec![directory.path().display().to_string()],
        ..tarsy_config::Skills::default()
    };
    let skills = Skills::new(&config, Mask::default());
    write(directory.path(), "pg.md", &format!("{MATTER}Two."));
    assert_eq!(read(skills.current().await.as_ref()), ["pg: One."]);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(read(skills.current().await.as_ref()), ["pg: Two."]);
}
