//! Printing lines while one status line below them is drawn again and again.
//!
//! Knows a `Write` and the clock of the runtime, not whether the other side is a terminal.

use std::io::{self, Write};
use std::time::Duration;

use tokio::time::Instant;

/// A person cannot read faster than ten of these a second.
const REDRAW: Duration = Duration::from_millis(100);
const ERASE: &str = "\r\x1b[2K";

/// What becomes of the status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// It is not shown.
    Off,
    /// It is drawn over itself: a terminal.
    Redraw,
    /// Each one is a line of its own: a file or a pipe, on request.
    Lines,
}

/// A writer with a status line.
///
/// [`Printer::status`] draws at most ten times a second and keeps what it does not draw: call [`Printer::tick`] at
/// [`Printer::due`].
#[derive(Debug)]
pub struct Printer<W> {
    out: W,
    live: Live,
    /// As it should be seen.
    status: Option<String>,
    /// As it is seen.
    drawn: Option<String>,
    drawn_at: Option<Instant>,
}

impl<W: Write> Printer<W> {
    /// A printer with nothing on it.
    pub fn new(out: W, live: Live) -> Self {
        Self { out, live, status: None, drawn: None, drawn_at: None }
    }

    /// What happens to the status line.
    pub fn live(&self) -> Live {
        self.live
    }

    /// Prints `lines` above the status line, and `status` below them at once.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn lines(&mut self, lines: &[String], status: Option<String>) -> io::Result<()> {
        self.erase()?;
        for line in lines {
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()?;
        self.status = status;
        match self.live {
            Live::Off | Live::Lines => Ok(()),
            Live::Redraw => self.draw(),
        }
    }

    /// Shows another status, now or at [`Printer::due`].
    ///
    /// # Errors
    /// When the writer fails.
    pub fn status(&mut self, status: Option<String>) -> io::Result<()> {
        self.status = status;
        self.tick()
    }

    /// When the status that waits may be drawn; `None` when it is drawn.
    pub fn due(&self) -> Option<Instant> {
        let waits = self.live != Live::Off && self.status != self.drawn;
        waits.then(|| self.drawn_at.map_or_else(Instant::now, |at| at + REDRAW))
    }

    /// Draws the status that waits, if it may be drawn.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn tick(&mut self) -> io::Result<()> {
        match self.due() {
            Some(due) if due <= Instant::now() => self.draw(),
            Some(_) | None => Ok(()),
        }
    }

    /// Takes the status line unavailable.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn clear(&mut self) -> io::Result<()> {
        self.status = None;
        self.erase()?;
        self.out.flush()
    }

    fn draw(&mut self) -> io::Result<()> {
        self.erase()?;
        if let Some(status) = &self.status {
            match self.live {
                Live::Off => {}
                Live::Redraw => write!(self.out, "{status}")?,
                Live::Lines => writeln!(self.out, "{status}")?,
            }
        }
        self.out.flush()?;
        self.drawn.clone_from(&self.status);
        self.drawn_at = Some(Instant::now());
        Ok(())
    }

    fn erase(&mut self) -> io::Result<()> {
        if self.drawn.take().is_some() && self.live == Live::Redraw {
            write!(self.out, "{ERASE}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(printer: &Printer<Vec<u8>>) -> String {
        String::from_utf8(printer.out.clone()).unwrap()
    }

    fn some(status: &str) -> Option<String> {
        Some(status.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_line_is_drawn_ten_times_a_second_and_its_last_state_is_not_lost() {
        let mut printer = Printer::new(Vec::new(), Live::Redraw);
        for n in 0..100 {
            printer.status(some(&format!("{n}"))).unwrap();
            tokio::time::advance(Duration::from_millis(5)).await;
        }
        assert_eq!(text(&printer), format!("0{ERASE}20{ERASE}40{ERASE}60{ERASE}80"));
        tokio::time::sleep_until(printer.due().unwrap()).await;
        printer.tick().unwrap();
        assert_eq!(text(&printer), format!("0{ERASE}20{ERASE}40{ERASE}60{ERASE}80{ERASE}99"));
        assert_eq!(printer.due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_printed_line_takes_the_place_of_the_status_line() {
        let mut printer = Printer::new(Vec::new(), Live::Redraw);
        printer.status(some("thinking… 412 tokens")).unwrap();
        printer.lines(&["+0.9 thinking".to_owned()], None).unwrap();
        assert_eq!(text(&printer), format!("thinking… 412 tokens{ERASE}+0.9 thinking\n"));
        printer.lines(&["+1.0 call".to_owned()], some("writing…")).unwrap();
        printer.clear().unwrap();
        assert_eq!(text(&printer), format!("thinking… 412 tokens{ERASE}+0.9 thinking\n+1.0 call\nwriting…{ERASE}"));
    }

    #[tokio::test(start_paused = true)]
    async fn off_a_terminal_there_is_no_live_line_unless_asked_for() {
        let mut printer = Printer::new(Vec::new(), Live::Off);
        printer.status(some("thinking…")).unwrap();
        printer.lines(&["+0.9 thinking".to_owned()], some("writing…")).unwrap();
        assert_eq!((text(&printer).as_str(), printer.due()), ("+0.9 thinking\n", None));

        let mut printer = Printer::new(Vec::new(), Live::Lines);
        printer.status(some("thinking…")).unwrap();
        printer.lines(&["+0.9 thinking".to_owned()], None).unwrap();
        assert_eq!(text(&printer), "thinking…\n+0.9 thinking\n");
    }
}
