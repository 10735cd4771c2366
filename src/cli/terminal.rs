//! Prints lines above a status line that is redrawn.
//!
//! Knows a `Write` and the clock of the runtime, but not whether the other side is a terminal.

use std::io::{self, Write};
use std::time::Duration;

use tokio::time::Instant;

/// A person cannot read more than ten status lines a second.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const ERASE: &str = "\r\x1b[2K";

/// The way in which the status line is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// No status is shown.
    Off,
    /// Each status replaces the one before it: for a terminal.
    Redraw,
    /// Each status is a separate line: for a file or a pipe, on request.
    Lines,
}

/// A writer with a status line.
///
/// [`Printer::status`] draws at most ten times a second and keeps a status that it does not draw: the caller calls
/// [`Printer::tick`] at [`Printer::due`].
#[derive(Debug)]
pub struct Printer<W> {
    out: W,
    live: Live,
    /// The latest status.
    status: Option<String>,
    /// The status on the terminal.
    drawn: Option<String>,
    drawn_at: Option<Instant>,
}

impl<W: Write> Printer<W> {
    pub fn new(out: W, live: Live) -> Self {
        Self {
            out,
            live,
            status: None,
            drawn: None,
            drawn_at: None,
        }
    }

    /// Prints `lines` above the status line and draws `status` below them at once.
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

    /// Changes the status; it is drawn now or at [`Printer::due`].
    ///
    /// # Errors
    /// When the writer fails.
    pub fn status(&mut self, status: Option<String>) -> io::Result<()> {
        self.status = status;
        self.tick()
    }

    /// The time when a pending status may be drawn; `None` if all is drawn.
    pub fn due(&self) -> Option<Instant> {
        let waits = self.live != Live::Off && self.status != self.drawn;
        waits.then(|| {
            self.drawn_at
                .map_or_else(Instant::now, |at| at + REDRAW_INTERVAL)
        })
    }

    /// Draws the status if it is due.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn tick(&mut self) -> io::Result<()> {
        match self.due() {
            Some(due) if due <= Instant::now() => self.draw(),
            Some(_) | None => Ok(()),
        }
    }

    /// Removes the status line.
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
    async fn a_status_line_is_drawn_ten_times_a_second_and_its_last_state_stays() {
        let mut printer = Printer::new(Vec::new(), Live::Redraw);
        for n in 0..100 {
            printer.status(some(&format!("{n}"))).unwrap();
            tokio::time::advance(Duration::from_millis(5)).await;
        }
        assert_eq!(
            text(&printer),
            format!("0{ERASE}20{ERASE}40{ERASE}60{ERASE}80")
        );
        tokio::time::sleep_until(printer.due().unwrap()).await;
        printer.tick().unwrap();
        assert_eq!(
            text(&printer),
            format!("0{ERASE}20{ERASE}40{ERASE}60{ERASE}80{ERASE}99")
        );
        assert_eq!(printer.due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_printed_line_takes_the_place_of_the_status_line() {
        let mut printer = Printer::new(Vec::new(), Live::Redraw);
        printer.status(some("thinking… 412 tokens")).unwrap();
        printer.lines(&["+0.9 thinking".to_owned()], None).unwrap();
        assert_eq!(
            text(&printer),
            format!("thinking… 412 tokens{ERASE}+0.9 thinking\n")
        );
        printer
            .lines(&["+1.0 call".to_owned()], some("writing…"))
            .unwrap();
        printer.clear().unwrap();
        assert_eq!(
            text(&printer),
            format!("thinking… 412 tokens{ERASE}+0.9 thinking\n+1.0 call\nwriting…{ERASE}")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn off_a_terminal_there_is_no_live_line_unless_asked_for() {
        let mut printer = Printer::new(Vec::new(), Live::Off);
        printer.status(some("thinking…")).unwrap();
        printer
            .lines(&["+0.9 thinking".to_owned()], some("writing…"))
            .unwrap();
        assert_eq!(
            (text(&printer).as_str(), printer.due()),
            ("+0.9 thinking\n", None)
        );

        let mut printer = Printer::new(Vec::new(), Live::Lines);
        printer.status(some("thinking…")).unwrap();
        printer.lines(&["+0.9 thinking".to_owned()], None).unwrap();
        assert_eq!(text(&printer), "thinking…\n+0.9 thinking\n");
    }
}
