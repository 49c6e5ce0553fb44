//! The qtest protocol: one command a line, one answer a line, interrupt lines reported in between.

use crate::error::NicError;
use crate::sync::Lock;
use std::collections::BTreeSet;
use std::format;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::string::String;
use std::time::Duration;

/// Bound of a command: QEMU answers in microseconds, a loaded machine in milliseconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// The timer's line, which rises and falls all the time.
const TIMER_LINE: u32 = 0;

struct State {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    high: BTreeSet<u32>,
    line: String,
}

/// A connection to QEMU.
pub(super) struct Connection {
    state: Lock<State>,
}

fn io(what: &'static str) -> impl Fn(std::io::Error) -> NicError {
    move |error| NicError::Io { what, message: format!("{error}") }
}

impl State {
    fn command(&mut self, command: &str) -> Result<Option<u64>, NicError> {
        self.stream.write_all(command.as_bytes()).map_err(io("qtest command"))?;
        loop {
            self.line.clear();
            let n = self.reader.read_line(&mut self.line).map_err(io("qtest answer"))?;
            if n == 0 {
                return Err(NicError::Removed);
            }
            let mut words = self.line.split_whitespace();
            match words.next() {
                Some("OK") => {
                    return Ok(words
                        .next()
                        .and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()));
                }
                Some("IRQ") => {
                    let edge = words.next();
                    if let Some(number) = words.next().and_then(|word| word.parse().ok())
                        && number != TIMER_LINE
                    {
                        match edge {
                            Some("raise") => drop(self.high.insert(number)),
                            _ => drop(self.high.remove(&number)),
                        }
                    }
                }
                _ => {
                    let message = format!("{:?} was answered with {:?}", command.trim(), self.line.trim());
                    return Err(NicError::Io { what: "qtest", message });
                }
            }
        }
    }
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> Result<Self, NicError> {
        stream.set_read_timeout(Some(ANSWER_LIMIT)).map_err(io("qtest socket"))?;
        let reader = BufReader::new(stream.try_clone().map_err(io("qtest socket"))?);
        let state = State { stream, reader, high: BTreeSet::new(), line: String::new() };
        Ok(Self { state: Lock::new(state) })
    }

    fn value(&self, command: &str) -> Result<u32, NicError> {
        let value = self.state.lock().command(command)?;
        let missing = || NicError::Io { what: "qtest", message: format!("{:?} gave no value", command.trim()) };
        value.map(|value| value as u32).ok_or_else(missing)
    }

    pub(super) fn read_32(&self, at: u64) -> Result<u32, NicError> {
        self.value(&format!("readl {at:#x}\n"))
    }

    pub(super) fn write_32(&self, at: u64, value: u32) -> Result<(), NicError> {
        self.state.lock().command(&format!("writel {at:#x} {value:#x}\n")).map(|_| ())
    }

    pub(super) fn in_32(&self, port: u32) -> Result<u32, NicError> {
        self.value(&format!("inl {port:#x}\n"))
    }

    pub(super) fn out_32(&self, port: u32, value: u32) -> Result<(), NicError> {
        self.state.lock().command(&format!("outl {port:#x} {value:#x}\n")).map(|_| ())
    }

    /// Asks for reports of interrupt lines.
    pub(super) fn intercept_lines(&self) -> Result<(), NicError> {
        self.state.lock().command("irq_intercept_in ioapic\n").map(|_| ())
    }

    /// True if a line other than the timer's is high. Asks something harmless first, so that reports come in.
    pub(super) fn line_is_high(&self) -> Result<bool, NicError> {
        let mut state = self.state.lock();
        state.command("inl 0xcf8\n")?;
        Ok(!state.high.is_empty())
    }
}
