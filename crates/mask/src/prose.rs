//! Recognises prose in the place of a value: `password must be changed`.

/// Whether a value is prose, and so no secret: `must be changed`.
pub(crate) fn is_prose(value: &str) -> bool {
    const FIRST: [&str; 36] = [
        "must",
        "should",
        "is",
        "was",
        "are",
        "has",
        "have",
        "not",
        "cannot",
        "can't",
        "may",
        "missing",
        "invalid",
        "incorrect",
        "wrong",
        "expired",
        "empty",
        "denied",
        "failed",
        "mismatch",
        "changed",
        "rejected",
        "revoked",
        "too",
        "authentication",
        "unable",
        "unknown",
        "unauthorized",
        "does",
        "policy",
        "rotation",
        "could",
        "error",
        "found",
        "role",
        "resource",
    ];
    const INNER: [&str; 24] = [
        "is", "was", "not", "has", "have", "been", "be", "the", "a", "to", "of", "for", "in",
        "from", "by", "with", "or", "and", "must", "should", "at", "no", "this", "your",
    ];
    let mut words = value
        .split_whitespace()
        .map(|word| word.trim_end_matches(['.', ',', ';', ':', '!']));
    let first = words.next().unwrap_or_default();
    if value.bytes().take(400).any(|b| b.is_ascii_digit()) && !FIRST.contains(&first) {
        return false;
    }
    const FAULTS: [&str; 10] = [
        "mismatch",
        "invalid",
        "expired",
        "missing",
        "failed",
        "denied",
        "malformed",
        "required",
        "incorrect",
        "rejected",
    ];
    FIRST.iter().any(|word| first.eq_ignore_ascii_case(word))
        || words.clone().take(6).any(|word| FAULTS.contains(&word))
        || words.take(30).filter(|word| INNER.contains(word)).count() >= 2
}
