//! What is shipped beside the program: completions, man pages, packages, units.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::Workdir;

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(packaging(name)).expect("a file of the packaging")
}

/// Whether a program is there to be asked.
fn is_there(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.is_ok_and(|output| output.status.success())
}

/// The flags of a command that a text uses.
fn flags(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    let flags = words.filter(|word| word.starts_with("--") && word.trim_start_matches('-').len() > 1);
    flags.map(str::to_owned).collect()
}

#[test]
fn completions_are_made_for_every_shell_and_parse() {
    let workdir = Workdir::new();
    for (shell, says) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef mt-detector"),
        ("fish", "complete -c mt-detector"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        let script = workdir.run(&["completions", shell]).succeeded().stdout;
        assert!(script.contains(says) && script.contains("trace-view"), "{shell}");
        if is_there(shell) && matches!(shell, "bash" | "zsh") {
            let file = workdir.file(shell, &script);
            let parsed = Command::new(shell)
                .arg("-n")
                .arg(workdir.path(&file))
                .output()
                .expect("a shell");
            assert!(parsed.status.success(), "{parsed:?}");
        }
    }
    assert_eq!(workdir.run(&["completions", "tcsh"]).code, Some(2));
}

#[test]
fn every_command_has_a_man_page() {
    let workdir = Workdir::new();
    workdir.run(&["man", "--out", "pages"]).succeeded();
    let help = workdir.run(&["--help"]).succeeded().stdout;
    let commands = help.split("Commands:\n").nth(1).expect("a list");
    let names = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|name| *name != "help") {
        let page = std::fs::read_to_string(workdir.path(&format!("pages/mt-detector-{name}.1"))).expect("a page");
        assert!(page.contains(".TH") && page.contains(".SH SYNOPSIS"), "{name}");
    }
    let page = workdir.run(&["man"]).succeeded().stdout;
    assert!(page.contains("Exit codes") || page.contains("EXTRA"), "{page}");
}

#[test]
fn scripts_parse_and_say_where_they_can_not_run() {
    for script in ["static.sh", "deb.sh"] {
        let parsed = Command::new("bash")
            .arg("-n")
            .arg(packaging(script))
            .output()
            .expect("bash");
        assert!(parsed.status.success(), "{script}: {parsed:?}");
    }
    let check = Command::new("bash")
        .arg(packaging("static.sh"))
        .arg("--check")
        .output()
        .expect("bash");
    let says = String::from_utf8_lossy(&check.stderr);
    assert!(
        check.status.success() || check.status.code() == Some(3) && says.contains("for want of"),
        "{check:?}"
    );
}

#[test]
fn a_debian_package_holds_the_program_its_pages_and_units() {
    if !is_there("dpkg-deb") {
        return;
    }
    let workdir = Workdir::new();
    let made = Command::new("bash")
        .arg(packaging("deb.sh"))
        .arg(env!("CARGO_BIN_EXE_mt-detector"))
        .arg(workdir.path("."))
        .output()
        .expect("bash");
    assert!(made.status.success(), "{made:?}");
    let package = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let listed = Command::new("dpkg-deb")
        .args(["--contents", &package])
        .output()
        .expect("dpkg-deb");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for file in [
        "usr/bin/mt-detector",
        "man1/mt-detector-analyze.1.gz",
        "bash-completion/completions/mt-detector",
        "mt-detector-sweep.timer",
        "echarts.LICENSE",
    ] {
        assert!(listed.contains(file), "{file} is not in\n{listed}");
    }
}

#[test]
fn units_and_jobs_use_flags_and_variables_that_there_are() {
    let workdir = Workdir::new();
    let known = flags(&workdir.run(&["sweep", "--help"]).succeeded().stdout);
    let (service, job) = (
        read("systemd/mt-detector-sweep.service"),
        read("kubernetes/cronjob.yaml"),
    );
    for text in [&service, &job] {
        let used: BTreeSet<String> = flags(text);
        assert!(!used.is_empty() && used.is_subset(&known), "{used:?}");
    }
    let help = workdir.run(&["sweep", "--help"]).succeeded().stdout;
    for variable in ["CLICKHOUSE_URL", "CLICKHOUSE_USER"] {
        assert!(
            help.contains(variable) && job.contains(variable) && read("systemd/mt-detector.default").contains(variable),
            "{variable}"
        );
    }
    assert!(
        service.contains("SuccessExitStatus=6"),
        "a sweep that finds the lock held is no failure"
    );
}

#[test]
fn units_are_sections_of_keys() {
    for (unit, sections) in [
        ("mt-detector-sweep.service", ["Unit", "Service", "Install"]),
        ("mt-detector-sweep.timer", ["Unit", "Timer", "Install"]),
    ] {
        let text = read(&format!("systemd/{unit}"));
        let found: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'))
            .collect();
        assert_eq!(found, sections, "{unit}");
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with(['#', '[']))
        {
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{unit}: {line}"));
            assert!(
                key.chars().all(char::is_alphanumeric) && !value.is_empty(),
                "{unit}: {line}"
            );
        }
    }
}

#[test]
fn the_cron_job_is_well_formed() {
    let text = read("kubernetes/cronjob.yaml");
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
    assert_eq!(kinds, ["Secret", "PersistentVolumeClaim", "CronJob"]);
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        assert!(indent % 2 == 0 && !line.contains('\t'), "line {}: {line}", number + 1);
    }
    let yaml = "import sys, yaml; docs = list(yaml.safe_load_all(open(sys.argv[1]))); assert len(docs) == 3; \
                spec = docs[2]['spec']['jobTemplate']['spec']['template']['spec']; \
                names = {v['name'] for v in spec['volumes']}; mounts = {m['name'] for m in spec['containers'][0]['volumeMounts']}; assert mounts <= names";
    let parsed = Command::new("python3")
        .args(["-c", yaml])
        .arg(packaging("kubernetes/cronjob.yaml"))
        .output();
    if let Ok(parsed) = parsed {
        let errors = String::from_utf8_lossy(&parsed.stderr);
        assert!(
            parsed.status.success() || errors.contains("No module named 'yaml'"),
            "{errors}"
        );
    }
}

#[test]
fn the_dockerfile_holds_instructions() {
    let text = read("Dockerfile").replace("\\\n", " ");
    let known = ["FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"];
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        assert!(known.contains(&line.split(' ').next().expect("a word")), "{line}");
    }
    assert_eq!(text.matches("FROM ").count(), 2, "what builds is not shipped");
}
