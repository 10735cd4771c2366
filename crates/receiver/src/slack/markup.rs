//! Slack's markup as plain text: links, names and the three escaped characters.
//! Source: <https://docs.slack.dev/messaging/formatting-message-text>.

/// The text as its author sees it, without the mentions of `bot`.
pub(super) fn plain(text: &str, bot: Option<&str>) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('<') {
        plain.push_str(&unescaped(before));
        // Slack escapes a `<` that a person types, so an open one is no markup.
        let Some((inside, after)) = behind.split_once('>') else {
            plain.push('<');
            rest = behind;
            continue;
        };
        plain.push_str(&unescaped(&reference(inside, bot)));
        rest = after;
    }
    plain.push_str(&unescaped(rest));
    plain.trim().to_owned()
}

/// The words of a reference between `<` and `>`.
fn reference(inside: &str, bot: Option<&str>) -> String {
    let (target, label) = inside
        .split_once('|')
        .map_or((inside, None), |(target, label)| (target, Some(label)));
    if let Some(user) = target.strip_prefix('@') {
        return if Some(user) == bot {
            String::new()
        } else {
            format!("@{}", label.unwrap_or(user))
        };
    }
    if let Some(channel) = target.strip_prefix('#') {
        return format!("#{}", label.unwrap_or(channel));
    }
    if let Some(special) = target.strip_prefix('!') {
        let word = special.split('^').next().unwrap_or_default();
        return label.map_or_else(|| format!("@{word}"), str::to_owned);
    }
    match label {
        // Slack makes a link of each address that a person types, and shows what they typed.
        Some(label) if !target.ends_with(label) => format!("{label} ({target})"),
        Some(label) => label.to_owned(),
        None => target.to_owned(),
    }
}

/// The three characters that Slack escapes, each once: `&amp;lt;` is the text `&lt;`.
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_what_its_author_sees_and_the_bot_is_left_out() {
        for (text, expected) in [
            ("<@UBOT> why now?", "why now?"),
            ("why <@UBOT|tarsy>  now?", "why   now?"),
            ("<@UBOT> ask <@U7> or <@U8|bob>", "ask @U7 or @bob"),
            (
                "see <https://a.example/x?a=1&amp;b=2|the graph>",
                "see the graph (https://a.example/x?a=1&b=2)",
            ),
            (
                "<http://db-1.example|db-1.example> is full",
                "db-1.example is full",
            ),
            ("<https://a.example/x>", "https://a.example/x"),
            ("<mailto:ana@a.example|ana@a.example>", "ana@a.example"),
            ("in <#C1|alerts> and <#C2>", "in #alerts and #C2"),
            (
                "<!here> <!subteam^S1|@sre> <!date^1^{date}|today>",
                "@here @sre today",
            ),
            ("a &lt; b &amp;&amp; c &gt; d", "a < b && c > d"),
            ("&amp;lt;b&amp;gt;", "&lt;b&gt;"),
            ("a < b", "a < b"),
            ("<<@UBOT>", "<@UBOT"),
            ("<", "<"),
            ("<>", ""),
            ("<@UBOT>", ""),
            ("*bold* `code`\nline", "*bold* `code`\nline"),
        ] {
            assert_eq!(plain(text, Some("UBOT")), expected, "{text}");
        }
        assert_eq!(plain("<@UBOT> why?", None), "@UBOT why?");
    }
}
