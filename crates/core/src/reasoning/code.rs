//! Tracks character by character whether the end of a Markdown text is in code.

/// Minimum length of a fence.
const MIN_FENCE: usize = 3;

/// The code that a text is in at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CodeState {
    /// Sign and length of the open fence.
    fence: Option<(char, usize)>,
    /// Length of the backticks that began the span of this line.
    span: usize,
    /// The signs that are being read.
    run: Option<(char, usize)>,
    /// The run stands after words of its line.
    is_in_line: bool,
    /// The line has more than blanks and its first run.
    has_words: bool,
}

impl CodeState {
    pub(super) fn is_code(&self) -> bool {
        let mut now = *self;
        now.end_run();
        now.fence.is_some() || now.span > 0
    }

    pub(super) fn read(&mut self, text: &str) {
        text.chars().for_each(|c| self.next(c));
    }

    fn next(&mut self, c: char) {
        if let Some((sign, length)) = self.run
            && sign == c
        {
            self.run = Some((sign, length + 1));
            return;
        }
        self.end_run();
        match c {
            '\n' => (self.span, self.has_words) = (0, false),
            '`' | '~' => (self.run, self.is_in_line) = (Some((c, 1)), self.has_words),
            c if c.is_whitespace() => {}
            _ => self.has_words = true,
        }
    }

    fn end_run(&mut self) {
        let Some((sign, length)) = self.run.take() else {
            return;
        };
        let is_fence = length >= MIN_FENCE && !self.is_in_line;
        match self.fence {
            Some((open, wanted)) if is_fence && open == sign && length >= wanted => {
                self.fence = None
            }
            Some(_) => {}
            None if is_fence => self.fence = Some((sign, length)),
            None if sign == '`' && self.span == length => self.span = 0,
            None if sign == '`' && self.span == 0 => self.span = length,
            None => {}
        }
        self.has_words = true;
    }
}
