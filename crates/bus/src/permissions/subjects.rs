//! Patterns of subjects: `*` matches one token, `>` matches one or more at the end.

/// Whether every subject of the pattern `inner` is one of `outer`.
pub(super) fn covers(outer: &str, inner: &str) -> bool {
    let mut outer = outer.split('.');
    let mut inner = inner.split('.');
    loop {
        match (outer.next(), inner.next()) {
            (None, None) => return true,
            (Some(">"), Some(_)) => return true,
            (Some("*"), Some(token)) if token != ">" => {}
            (Some(token), Some(other)) if token == other => {}
            _ => return false,
        }
    }
}

/// Whether a subject belongs to both patterns.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let mut one = one.split('.');
    let mut other = other.split('.');
    loop {
        match (one.next(), other.next()) {
            (None, None) | (Some(">"), Some(_)) | (Some(_), Some(">")) => return true,
            (Some(token), Some(other)) if token == other || token == "*" || other == "*" => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_and_meets_others_token_by_token() {
        for (one, other, covered, met) in [
            ("tarsy.alerts.>", "tarsy.alerts.high", true, true),
            ("tarsy.alerts.>", "tarsy.alerts.*", true, true),
            ("tarsy.alerts.>", "tarsy.alerts", false, false),
            ("tarsy.alerts.*", "tarsy.alerts.>", false, true),
            ("tarsy.alerts.*.eu", "tarsy.alerts.high.*", false, true),
            ("tarsy.*.high", "tarsy.alerts.high", true, true),
            ("tarsy.alerts.high", "tarsy.alerts.low", false, false),
            ("tarsy.alerts.high.eu", "tarsy.alerts.high", false, false),
            (">", "$JS.API.>", true, true),
            ("$JS.API.>", ">", false, true),
        ] {
            assert_eq!(
                (covers(one, other), overlap(one, other), overlap(other, one)),
                (covered, met, met),
                "{one} {other}"
            );
        }
    }
}
