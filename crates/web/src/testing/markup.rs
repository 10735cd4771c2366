//! A strict checker of the pages' markup: it refuses each unknown element and attribute, each element that is not
//! closed in order, and each attribute with an unexpected value.
#![expect(
    clippy::string_slice,
    reason = "the places of ASCII characters are boundaries, and a test fails by panicking"
)]

const ELEMENTS: [&str; 78] = [
    "a",
    "article",
    "aside",
    "b",
    "blockquote",
    "body",
    "br",
    "button",
    "circle",
    "code",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "i",
    "input",
    "kbd",
    "label",
    "legend",
    "li",
    "line",
    "link",
    "main",
    "mark",
    "meta",
    "nav",
    "ol",
    "option",
    "p",
    "path",
    "polygon",
    "polyline",
    "pre",
    "rect",
    "script",
    "section",
    "select",
    "small",
    "span",
    "strong",
    "summary",
    "svg",
    "table",
    "tarsy-rest",
    "tbody",
    "td",
    "text",
    "textarea",
    "th",
    "thead",
    "time",
    "title",
    "tr",
    "ul",
    "s",
    "sup",
    "del",
    "u",
    "q",
    "abbr",
    "wbr",
];
const VOID: [&str; 6] = ["br", "hr", "input", "link", "meta", "wbr"];
const ATTRIBUTES: [&str; 67] = [
    "action",
    "aria-current",
    "aria-describedby",
    "aria-hidden",
    "aria-invalid",
    "aria-label",
    "aria-labelledby",
    "aria-live",
    "autocomplete",
    "charset",
    "checked",
    "class",
    "content",
    "d",
    "data-copy-before",
    "data-copy-link",
    "data-copy-text",
    "data-from",
    "data-ms",
    "data-keys",
    "data-open",
    "data-last",
    "data-local",
    "data-live",
    "data-load",
    "data-n",
    "data-print",
    "data-to",
    "datetime",
    "download",
    "for",
    "height",
    "hidden",
    "href",
    "id",
    "lang",
    "maxlength",
    "method",
    "name",
    "open",
    "placeholder",
    "points",
    "preserveaspectratio",
    "readonly",
    "rel",
    "required",
    "role",
    "rows",
    "scope",
    "selected",
    "spellcheck",
    "src",
    "start",
    "tabindex",
    "text-anchor",
    "title",
    "type",
    "value",
    "viewbox",
    "width",
    "x",
    "x1",
    "x2",
    "y",
    "y1",
    "y2",
    "transform",
];

/// The depth of the deepest element, or what is wrong.
pub(crate) fn check(html: &str) -> Result<usize, String> {
    let mut open: Vec<&str> = Vec::new();
    let mut deepest = 0;
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        text(&rest[..at])?;
        let end = tag_end(&rest[at..])
            .ok_or_else(|| format!("a tag without an end: {}", begin(&rest[at..])))?;
        let tag = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        if tag == "!DOCTYPE html" {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("</{name}> closes {last:?}"));
            }
            continue;
        }
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        element(name, &tag[name.len()..])?;
        if !VOID.contains(&name) {
            open.push(name);
            deepest = deepest.max(open.len());
        }
    }
    text(rest)?;
    if open.is_empty() {
        Ok(deepest)
    } else {
        Err(format!("not closed: {open:?}"))
    }
}

/// The number of elements and texts, as a browser counts nodes.
pub(crate) fn nodes(html: &str) -> usize {
    let tags = html.split('<').skip(1);
    tags.filter(|tag| !tag.starts_with('/'))
        .map(|tag| {
            1 + usize::from(
                tag.split_once('>')
                    .is_some_and(|(_, text)| !text.is_empty()),
            )
        })
        .sum()
}

/// The texts of a page, without its elements, in one line.
pub(crate) fn texts(html: &str) -> String {
    let parts = html
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let text: Vec<&str> = parts.filter(|text| !text.is_empty()).collect();
    let text = text
        .join(" ")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn tag_end(tag: &str) -> Option<usize> {
    let mut quoted = false;
    tag.char_indices().find_map(|(at, c)| {
        quoted ^= c == '"';
        (c == '>' && !quoted).then_some(at)
    })
}

fn begin(text: &str) -> String {
    text.chars().take(60).collect()
}

fn text(text: &str) -> Result<(), String> {
    match text.find(is_bad) {
        Some(at) => Err(format!("a text has {:?}", begin(&text[at..]))),
        None => Ok(()),
    }
}

fn is_bad(c: char) -> bool {
    c == '>'
        || (c.is_control() && !matches!(c, '\n' | '\t'))
        || tarsy_core::visible::is_invisible(c)
}

fn element(name: &str, attributes: &str) -> Result<(), String> {
    if !ELEMENTS.contains(&name) {
        return Err(format!("the element {name:?}"));
    }
    let mut rest = attributes.trim_start();
    let mut has_rel = false;
    let mut address = "";
    while !rest.is_empty() {
        let length = rest.find(['=', ' ']).unwrap_or(rest.len());
        let key = &rest[..length];
        rest = &rest[length..];
        let mut value = "";
        if let Some(quoted) = rest.strip_prefix("=\"") {
            let (inside, behind) = quoted.split_once('"').ok_or("a value without an end")?;
            (value, rest) = (inside, behind);
        } else if rest.starts_with('=') {
            return Err(format!("{key} without quotes"));
        }
        rest = rest.trim_start();
        attribute(name, key, value)?;
        has_rel |= key == "rel" && value == "noopener noreferrer nofollow ugc";
        if key == "href" {
            address = value;
        }
    }
    if address.starts_with("http") && !has_rel {
        return Err(format!("a link without rel: {address}"));
    }
    Ok(())
}

fn attribute(element: &str, key: &str, value: &str) -> Result<(), String> {
    let is_fine = match key {
        _ if !ATTRIBUTES.contains(&key.to_ascii_lowercase().as_str()) => false,
        "class" | "id" | "for" | "role" => value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ' ')),
        "href" => {
            let is_own = value.starts_with(['#', '/']) && !value.starts_with("//");
            is_own
                || element == "a" && (value.starts_with("https://") || value.starts_with("http://"))
        }
        "src" => value.starts_with("/assets/"),
        "action" | "data-live" | "data-load" | "data-open" => {
            value.starts_with('/') && !value.starts_with("//")
        }
        "points" | "x" | "y" | "x1" | "x2" | "y1" | "y2" | "width" | "height" => value
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | ' ' | '%' | '-')),
        _ => true,
    };
    if is_fine && text(value).is_ok() {
        Ok(())
    } else {
        Err(format!("{element} has {key}={:?}", begin(value)))
    }
}

#[test]
fn what_does_not_belong_is_found() {
    for (html, problem) in [
        ("<p>a</p>", None),
        ("<p>a", Some("not closed")),
        ("<p><b>a</p></b>", Some("closes")),
        ("<img src=\"/x\">", Some("the element \"img\"")),
        ("<p onclick=\"x\">a</p>", Some("onclick")),
        ("<p style=\"x\">a</p>", Some("style")),
        ("<a href=\"javascript:x\">a</a>", Some("href")),
        ("<a href=\"//evil.example\">a</a>", Some("href")),
        ("<a href=\"https://a.example\">a</a>", Some("without rel")),
        ("<script src=\"https://a.example\"></script>", Some("src")),
        ("<p>a\u{202e}b</p>", Some("a text has")),
        ("<p>a > b</p>", Some("a text has")),
        ("<a href=#1>a</a>", Some("without quotes")),
    ] {
        let found = check(html);
        match problem {
            None => assert_eq!(found, Ok(1)),
            Some(problem) => assert!(
                found.clone().is_err_and(|error| error.contains(problem)),
                "{html}: {found:?}"
            ),
        }
    }
}
