//! The secrets of `tests/fixtures/secrets`, the layouts in which they arrive, and the search for them in a text.

use serde_json::json;

const SEEDS: &str = include_str!("../../fixtures/secrets/seeds.txt");
const LOOK_ALIKES: &str = include_str!("../../fixtures/secrets/look_alikes.txt");

/// A text that holds secrets.
pub(crate) struct Seed {
    /// Name of the kind of secret.
    pub(crate) name: String,
    /// The text, without marks.
    pub(crate) text: String,
    /// The parts that must not be shown.
    pub(crate) secrets: Vec<String>,
}

impl Seed {
    /// The first of its secrets that `text` still shows, as it is or in one of the encodings of the layouts.
    pub(crate) fn shown_in(&self, text: &str) -> Option<&str> {
        let readings = readings(text);
        let shown = |secret: &&String| {
            readings
                .iter()
                .any(|reading| reading.contains(secret.as_str()))
        };
        self.secrets.iter().find(shown).map(String::as_str)
    }
}

pub(crate) fn seeds() -> Vec<Seed> {
    SEEDS
        .split("## ")
        .skip(1)
        .map(|block| {
            let (name, marked) = block.split_once('\n').unwrap();
            let marked = marked
                .trim_end_matches('\n')
                .replace('¦', "")
                .replace('␛', "\u{1b}")
                .replace('¤', "\u{200b}");
            let secrets = marked
                .split('«')
                .skip(1)
                .map(|rest| rest.split_once('»').unwrap().0.to_owned())
                .collect();
            Seed {
                name: name.to_owned(),
                text: marked.replace(['«', '»'], ""),
                secrets,
            }
        })
        .collect()
}

/// Texts without a secret.
pub(crate) fn look_alikes() -> Vec<String> {
    LOOK_ALIKES
        .lines()
        .map(|line| line.replace('⏎', "\n"))
        .collect()
}

/// A layout in which the text of a seed arrives.
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    pub(crate) of: fn(&str) -> String,
}

/// Twenty ways in which the text of a seed arrives.
pub(crate) const LAYOUTS: [Layout; 20] = [
    Layout {
        name: "as it is",
        of: |text| text.to_owned(),
    },
    Layout {
        name: "log line",
        of: log_line,
    },
    Layout {
        name: "tool result as JSON",
        of: |text| json!({"pod": "shop-7", "output": text, "code": 1}).to_string(),
    },
    Layout {
        name: "JSON within JSON",
        of: json_within_json,
    },
    Layout {
        name: "webhook of Alertmanager",
        of: webhook,
    },
    Layout {
        name: "block of YAML",
        of: yaml_block,
    },
    Layout {
        name: "block of Markdown",
        of: |text| format!("The pod printed:\n\n```text\n{text}\n```\n\nThen it ended."),
    },
    Layout {
        name: "line ends of Windows",
        of: |text| format!("begin\r\n{}\r\nend\r\n", text.replace('\n', "\r\n")),
    },
    Layout {
        name: "colours",
        of: colours,
    },
    Layout {
        name: "base64",
        of: |text| base64(text.as_bytes()),
    },
    Layout {
        name: "URL encoding",
        of: percent_encoded,
    },
    Layout {
        name: "JSON lines",
        of: json_lines,
    },
    Layout {
        name: "diff of a new file",
        of: |text| diff(text, '+'),
    },
    Layout {
        name: "context of a diff",
        of: |text| diff(text, ' '),
    },
    Layout {
        name: "logs of docker compose",
        of: compose,
    },
    Layout {
        name: "logs of stern",
        of: |text| prefixed(text, |_| "shop-7d9c5b6f4-x2x8p app ".to_owned()),
    },
    Layout {
        name: "kubectl logs --prefix",
        of: |text| prefixed(text, |_| "[pod/shop-7/app] ".to_owned()),
    },
    Layout {
        name: "journal of a host",
        of: |text| prefixed(text, |n| format!("Jan 02 03:04:{n:02} node-1 shop[17]: ")),
    },
    Layout {
        name: "times",
        of: |text| prefixed(text, |n| format!("2026-01-02T03:04:05.{n}Z ")),
    },
    Layout {
        name: "a word before it",
        of: |text| format!("Echo: {text}"),
    },
];

fn prefixed(text: &str, prefix: fn(usize) -> String) -> String {
    let lines: Vec<String> = text
        .lines()
        .zip(1..)
        .map(|(line, n)| format!("{}{line}\n", prefix(n)))
        .collect();
    lines.concat()
}

/// The lines of two services, one after the other.
fn compose(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("shop-1  | {line}\nmail-1  | 200 GET /health in 3 ms\n"))
        .collect();
    lines.concat()
}

fn log_line(text: &str) -> String {
    let begin = "2026-01-02T03:04:05Z ERROR shop-7 ";
    let separator = if text.contains('\n') {
        "printed:\n"
    } else {
        ""
    };
    format!("{begin}{separator}{text}\n2026-01-02T03:04:06Z INFO shop-7 stopped")
}

fn json_within_json(text: &str) -> String {
    let inner = json!({"stream": "stderr", "line": text}).to_string();
    json!({"items": [{"log": inner}], "total": 1}).to_string()
}

fn webhook(text: &str) -> String {
    let alert = json!({
        "status": "firing", "labels": {"alertname": "PodFails", "severity": "critical"},
        "annotations": {"summary": "a pod fails", "description": text}, "startsAt": "2026-01-02T03:04:05Z",
    });
    let webhook = json!({
        "version": "4", "status": "firing", "groupKey": "{}:{alertname=\"PodFails\"}", "receiver": "tarsy",
        "commonLabels": {"alertname": "PodFails"}, "alerts": [alert],
    });
    serde_json::to_string_pretty(&webhook).unwrap()
}

fn yaml_block(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "pod: shop-7\noutput:\n  note: |\n{}\ncode: 1\n",
        lines.concat()
    )
}

fn colours(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("\u{1b}[31m{line}\u{1b}[0m"))
        .collect();
    format!("\u{1b}[1mpod shop-7\u{1b}[0m\n{}", lines.join("\n"))
}

fn json_lines(text: &str) -> String {
    let first = json!({"level": "info", "msg": "start"});
    let second = json!({"level": "error", "msg": text, "pod": "shop-7"});
    format!("shop-7 | {first}\nshop-7 | {second}\nshop-7 | {first}\n")
}

/// As git prints it, with one mark before each line.
fn diff(text: &str, mark: char) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{mark}{line}\n")).collect();
    let head = "commit 5f1c2d\nAuthor: shop <shop@example.com>\n\n    Change it\n\n--- a/settings\n+++ b/settings\n";
    let count = lines.len() + 2;
    format!(
        "{head}@@ -1,{count} +1,{count} @@\n+begin\n{}-end\n",
        lines.concat()
    )
}

fn percent_encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    format!(
        "https://shop.example.com/log?line={}",
        text.bytes().map(byte).collect::<String>()
    )
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let padded = [
            chunk[0],
            chunk.get(1).copied().unwrap_or(0),
            chunk.get(2).copied().unwrap_or(0),
        ];
        let bits = padded
            .iter()
            .fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        for at in 0..4 {
            let index = (bits >> (18 - 6 * at)) & 63;
            text.push(if at <= chunk.len() {
                char::from(ALPHABET[index as usize])
            } else {
                '='
            });
        }
    }
    text
}

/// The text and its decoded forms.
pub(crate) fn readings(text: &str) -> Vec<String> {
    let unescaped = unescaped(text);
    let twice = self::unescaped(&unescaped);
    let runs = text.split(|c: char| !c.is_ascii_alphanumeric() && !"+/".contains(c));
    let decoded = runs
        .filter(|run| run.len() >= 16)
        .map(unbase64)
        .collect::<Vec<_>>()
        .join("\n");
    vec![
        text.to_owned(),
        percent_decoded(text),
        decoded,
        unescaped,
        twice,
    ]
}

fn unescaped(text: &str) -> String {
    text.replace("\\\\", "\u{0}")
        .replace("\\\"", "\"")
        .replace("\\n", "\n")
        .replace("\\r", "\r")
        .replace('\u{0}', "\\")
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            None => bytes.extend(format!("%{part}").bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn unbase64(run: &str) -> String {
    let mut bytes = Vec::new();
    let (mut bits, mut have) = (0u32, 0);
    for c in run.bytes() {
        let Some(value) = ALPHABET.iter().position(|known| *known == c) else {
            continue;
        };
        bits = bits << 6 | u32::try_from(value).unwrap();
        have += 6;
        if have >= 8 {
            have -= 8;
            bytes.push(u8::try_from((bits >> have) & 0xff).unwrap());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
