//! One run of the program: wall time, processor time, peak memory, standard output.

use std::error::Error;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Clock ticks of a second in /proc, on all systems that are about.
const TICKS: f64 = 100.0;

/// What a run took.
#[derive(Debug)]
#[allow(dead_code, reason = "each benchmark uses its part")]
pub struct Measured {
    pub seconds: f64,
    /// Processor seconds, user and system.
    pub processor: f64,
    pub megabytes: f64,
    pub stdout: String,
}

/// Runs a command; peak memory and processor time are read from /proc (Linux).
pub fn run(command: &mut Command) -> Result<Measured, Box<dyn Error>> {
    let started = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut output = child.stdout.take().ok_or("standard output is piped")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let (mut megabytes, mut processor) = (0.0f64, 0.0f64);
    let status = loop {
        // The kernel keeps both itself; they only have to be read before the process is gone.
        megabytes = megabytes.max(high_water_megabytes(child.id()).unwrap_or_default());
        processor = processor.max(processor_seconds(child.id()).unwrap_or_default());
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let seconds = started.elapsed().as_secs_f64();
    let stdout = reader.join().map_err(|_| "the reader fails")??;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    Ok(Measured {
        seconds,
        processor,
        megabytes,
        stdout,
    })
}

fn high_water_megabytes(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}

fn processor_seconds(process: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in brackets may hold blanks; user and system time are the 12th and 13th field behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Some(ticks.collect::<Result<Vec<_>, _>>().ok()?.iter().sum::<f64>() / TICKS)
}
