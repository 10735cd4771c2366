//! A prefilter for the multi-pattern search: finds the windows of a text in which a pattern can begin, by a hash of its
//! first letters, so that most of the text is not searched.

/// A bitmap of the hashed first letters of all patterns.
#[derive(Clone, Debug)]
pub(super) struct Prefilter {
    bits: Vec<u64>,
    /// Number of bits of a hash.
    kept: u32,
    /// Number of letters that are hashed.
    letters: usize,
    longest: usize,
    /// A pattern is too short for the hash, so it may begin anywhere.
    anywhere: bool,
}

impl Prefilter {
    /// Patterns have at least `letters` letters (at most eight are hashed), or one less.
    pub(super) fn new<'p>(
        patterns: impl Iterator<Item = &'p str>,
        letters: usize,
        kept: u32,
    ) -> Self {
        let mut prefilter = Self {
            bits: vec![0; (1 << kept) / 64],
            kept,
            letters,
            longest: 0,
            anywhere: !(2..=8).contains(&letters),
        };
        for pattern in patterns {
            let bytes = pattern.as_bytes();
            prefilter.longest = prefilter.longest.max(bytes.len());
            let head = bytes
                .iter()
                .take(letters)
                .fold(0, |value, b| value << 8 | u64::from(*b));
            match letters.checked_sub(bytes.len().min(letters)) {
                Some(0) => prefilter.set(head),
                Some(1) => (0..=255).for_each(|last| prefilter.set(head << 8 | last)),
                Some(_) | None => prefilter.anywhere = true,
            }
        }
        prefilter
    }

    /// The index of the word of a value, and its bit in the word.
    fn place(&self, value: u64) -> (usize, u64) {
        let hash = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.kept);
        (
            usize::try_from(hash >> 6).unwrap_or(usize::MAX),
            1 << (hash & 63),
        )
    }

    fn set(&mut self, value: u64) {
        let (index, bit) = self.place(value);
        if let Some(word) = self.bits.get_mut(index) {
            *word |= bit;
        }
    }

    fn has(&self, value: u64) -> bool {
        let (index, bit) = self.place(value);
        self.bits.get(index).is_some_and(|word| word & bit != 0)
    }

    /// Disjoint windows, in order, that contain every match completely. `begins` confirms that a pattern begins at a
    /// candidate offset.
    pub(super) fn windows(
        &self,
        text: &str,
        begins: impl Fn(usize) -> bool,
    ) -> Vec<(usize, usize)> {
        if self.anywhere {
            return vec![(0, text.len())];
        }
        let mask = u64::MAX >> (64 - 8 * self.letters);
        let mut windows: Vec<(usize, usize)> = Vec::new();
        let mut add = |start: usize| {
            let end = (start + self.longest).min(text.len());
            match windows.last_mut() {
                Some(last) if start <= last.1 => last.1 = end,
                Some(_) | None => windows.push((start, end)),
            }
        };
        let before = self.letters - 1;
        let mut value = text
            .bytes()
            .take(before)
            .fold(0, |value, b| value << 8 | u64::from(b));
        for (start, b) in text
            .as_bytes()
            .get(before..)
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            value = (value << 8 | u64::from(*b)) & mask;
            if self.has(value) && begins(start) {
                add(start);
            }
        }
        // The last letters may be a pattern with one letter less.
        if let Some(start) = text.len().checked_sub(before)
            && begins(start)
        {
            add(start);
        }
        windows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_contain_every_pattern_completely() {
        let prefilter = Prefilter::new(["abc", "Q~", "abcdef"].into_iter(), 3, 16);
        let windows = |text| prefilter.windows(text, |_| true);
        assert_eq!(
            windows("xx abcdef yy abcabc zz 0123"),
            vec![(3, 9), (13, 22), (25, 27)]
        );
        assert_eq!(windows("0123456789Q~"), vec![(10, 12)]);
        assert_eq!(windows("Q~"), vec![(0, 2)]);
        assert_eq!(windows("x"), vec![]);
        assert_eq!(
            Prefilter::new(["a"].into_iter(), 3, 16).windows("xyz", |_| true),
            vec![(0, 3)]
        );
    }
}
