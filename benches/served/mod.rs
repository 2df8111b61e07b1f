//! A gateway or a provider in a process of its own, for benches: what it uses is read from `/proc`.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use procfs::process::Process;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// A process that ends with this.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: String,
}

impl Served {
    /// Runs `command`, which reads `input` and says where it listens.
    pub(crate) fn start(mut command: Command, input: &str) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        child.stdin.take().ok_or("no stdin")?.write_all(input.as_bytes())?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on http://").ok_or("it did not start")?.to_owned();
        Ok(Self { child, address })
    }

    fn process(&self) -> Outcome<Process> {
        Ok(Process::new(i32::try_from(self.child.id())?)?)
    }

    /// Its anonymous memory in bytes.
    pub(crate) fn memory(&self) -> Outcome<u64> {
        Ok(self.process()?.status()?.rssanon.ok_or("no figure")? * 1_024)
    }

    /// The processor time it has used, in seconds.
    pub(crate) fn cpu(&self) -> Outcome<f64> {
        let stat = self.process()?.stat()?;
        Ok((stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // it may have ended by itself
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
