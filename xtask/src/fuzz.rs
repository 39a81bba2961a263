//! `cargo xtask fuzz`: a fuzz target of `tests/fuzz` for a while.
//!
//! The package has cargo-fuzz's layout, so `cargo fuzz run` works there too. It is not needed: what
//! it adds are compiler flags, which are written down here.

mod seeds;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{command, output, root, run as sh, succeeds};

/// Fuzzes what reads bytes from outside, with a sanitizer, from fixtures and kept inputs
///
/// Needs a nightly toolchain, or a stable one with RUSTC_BOOTSTRAP=1 (tried in this order), and a C++
/// compiler for libFuzzer.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The target, a folder of `tests/fuzz/corpus`, or `all` of them
    target: String,
    /// How long to fuzz each target, in seconds, once it is built
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    seconds: u32,
}

/// The word for every target.
const ALL: &str = "all";

/// Said where no toolchain here can build with a sanitizer.
pub(crate) const NO_FUZZER: &str =
    "neither a nightly toolchain nor RUSTC_BOOTSTRAP=1 nor a C++ compiler to fuzz with";

/// How the target can be built on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Toolchain {
    Nightly,
    Bootstrap,
}

/// Coverage for libFuzzer and the address sanitizer, as cargo-fuzz asks for them.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing -Zsanitizer=address";

/// Builds the target and lets it run.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Some(toolchain) = toolchain() else {
        bail!("{NO_FUZZER}; `rustup toolchain install nightly` and a C++ compiler help");
    };
    fuzz(toolchain, &args.target, args.seconds)
}

/// Every target as part of the gate, briefly; false where this machine cannot.
pub(crate) fn check(seconds: u32) -> Result<bool> {
    match toolchain() {
        Some(toolchain) => fuzz(toolchain, ALL, seconds).map(|()| true),
        None => Ok(false),
    }
}

fn toolchain() -> Option<Toolchain> {
    if !succeeds(&mut command("c++", &["--version"])) {
        return None;
    }
    if succeeds(&mut command(
        "rustup",
        &["run", "nightly", "cargo", "--version"],
    )) {
        return Some(Toolchain::Nightly);
    }
    let mut flag = command("rustc", &["-Zsanitizer=address", "--print", "cfg"]);
    succeeds(flag.env("RUSTC_BOOTSTRAP", "1")).then_some(Toolchain::Bootstrap)
}

fn fuzz(toolchain: Toolchain, target: &str, seconds: u32) -> Result<()> {
    let home = root().join("tests/fuzz");
    let known = names(&home.join("corpus"))?;
    let targets: Vec<&str> = known
        .iter()
        .map(String::as_str)
        .filter(|known| target == ALL || target == *known)
        .collect();
    if targets.is_empty() {
        bail!("no fuzz target {target}; there is {}", known.join(", "));
    }
    let folder = build(toolchain, &home, &targets)?;
    for target in targets {
        play(&home, &folder.join(target), target, seconds)?;
    }
    Ok(())
}

/// Lets a target run for so long.
fn play(home: &Path, binary: &Path, target: &str, seconds: u32) -> Result<()> {
    println!("fuzzing {target} for {seconds} s");
    let kept = home.join("corpus").join(target);
    // What a run finds goes to a folder that git does not see; what is worth it is moved by hand.
    let found = home.join("target/found").join(target);
    let broken = home.join("target/broken");
    for folder in [&found, &broken] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut command = Command::new(binary);
    command.current_dir(home).arg(&found).arg(&kept);
    let seeds = home.join("target/seeds").join(target);
    if seeds::write(root(), target, &seeds)? {
        command.arg(&seeds);
    }
    command.args([
        format!("-max_total_time={seconds}"),
        format!("-artifact_prefix={}/{target}-", broken.display()),
        "-max_len=70000".to_owned(),
        "-timeout=5".to_owned(),
        "-print_final_stats=1".to_owned(),
        "-verbosity=0".to_owned(),
    ]);
    sh(&mut command).with_context(|| {
        format!(
            "an input broke {target}; it lies in {}, and belongs into {} once the cause is fixed",
            broken.display(),
            kept.display()
        )
    })
}

/// Builds the targets, and says where their binaries are.
fn build(toolchain: Toolchain, home: &Path, targets: &[&str]) -> Result<PathBuf> {
    let rustc = ["rustc", "-vV"];
    let version = match toolchain {
        Toolchain::Nightly => output(&mut command(
            "rustup",
            &[&["run", "nightly"], &rustc[..]].concat(),
        ))?,
        Toolchain::Bootstrap => output(&mut command(rustc[0], &rustc[1..]))?,
    };
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc names no host")?
        .to_owned();
    let mut build = vec!["build", "--release", "--target", &host];
    for target in targets {
        build.extend(["--bin", target]);
    }
    let named = targets.join(", ");
    // A target named to cargo keeps the flags away from build scripts.
    let mut cargo = match toolchain {
        Toolchain::Nightly => {
            println!("building {named} with the nightly toolchain");
            command(
                "rustup",
                &[&["run", "nightly", "cargo"], &build[..]].concat(),
            )
        }
        Toolchain::Bootstrap => {
            println!("building {named} with RUSTC_BOOTSTRAP=1");
            let mut cargo = command("cargo", &build);
            cargo.env("RUSTC_BOOTSTRAP", "1");
            cargo
        }
    };
    // This process was started by another cargo, whose settings are not the fuzzer's.
    cargo
        .current_dir(home)
        .env("RUSTFLAGS", FLAGS)
        .env("CARGO_TARGET_DIR", home.join("target"))
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO");
    sh(&mut cargo)?;
    Ok(home.join("target").join(&host).join("release"))
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let folders = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}
