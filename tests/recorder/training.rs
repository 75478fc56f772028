//! A job of several processes that train under the recorder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::Workdir;
use crate::releases::Release;

/// The folder of this test.
pub fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorder")
}

/// The folder of the recorder.
pub fn recorder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recorder")
}

/// A job of eight ranks on two nodes; `train.py` has the defaults of what is asked.
pub struct Training<'a> {
    release: &'a Release,
    asked: Value,
    settings: Vec<(&'static str, String)>,
    ranks: u32,
}

impl<'a> Training<'a> {
    pub fn new(release: &'a Release) -> Self {
        Self {
            release,
            asked: json!({}),
            settings: vec![("MT_RECORDER_DIR", "recorded".to_owned())],
            ranks: 8,
        }
    }

    #[must_use]
    pub fn asking(mut self, asked: Value) -> Self {
        self.asked = asked;
        self
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.settings.push((name, value.into()));
        self
    }

    #[must_use]
    pub fn ranks(mut self, ranks: u32) -> Self {
        self.ranks = ranks;
        self
    }

    /// Trains to the end in a folder; gives what was told on standard error.
    pub fn run(&self, workdir: &Workdir) -> String {
        let mut processes = Vec::new();
        for rank in 0..self.ranks {
            let mut command = Command::new("python3");
            for (name, _) in std::env::vars_os() {
                let name = name.to_string_lossy().into_owned();
                if ["MT_RECORDER", "SLURM", "TORCHELASTIC"]
                    .iter()
                    .any(|begin| name.starts_with(begin))
                {
                    command.env_remove(name);
                }
            }
            command
                .arg(here().join("train.py"))
                .arg(self.asked.to_string())
                .current_dir(workdir.path(""))
                .env("RANK", rank.to_string())
                .env("WORLD_SIZE", self.ranks.to_string())
                .env("MEGATRON_CORE", &self.release.folder)
                .env("PYTHONPATH", recorder())
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .env("MT_RECORDER_JOB", "recorded-job")
                .env("MT_RECORDER_NODE", format!("gpu-{:03}", rank / 4))
                // Files are read as they are while training runs.
                .env("MT_RECORDER_GZIP", "0")
                .envs(self.settings.iter().map(|(name, value)| (*name, value)))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            processes.push(command.spawn().expect("python3 starts"));
        }
        let mut told = String::new();
        for (rank, process) in processes.into_iter().enumerate() {
            let output = process.wait_with_output().expect("a process to wait for");
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "megatron-core {}, rank {rank}: {words}",
                self.release.version
            );
            told += &words;
        }
        told
    }
}
