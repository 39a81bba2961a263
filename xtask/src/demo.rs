//! `cargo xtask demo`: six failures played against the real gateway, with what the caller saw and
//! the trail of attempts.
//!
//! Three scripted providers and the built binary talk over real HTTP on loopback. Every story
//! states what must come out of it; the exit status says whether it did.

mod caller;
mod stories;
mod timeline;
mod trail;

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Result, bail};

use stories::{Providers, Story, stories};
use timeline::Paint;
use trail::Trail;

use crate::running::{self, Log, Running};

/// Play six failures against the gateway and show what the caller saw and the trail of attempts
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Use the release build of the gateway
    #[arg(long)]
    release: bool,

    /// Show the routing log of each story as well
    #[arg(long)]
    log: bool,
}

/// Plays all stories and fails when one came out wrong.
pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(play(args))
}

async fn play(args: &Args) -> Result<()> {
    let paint = Paint::new(std::io::stdout().is_terminal());
    println!("building the gateway ...");
    let binary = running::build(args.release)?;
    println!("{}", paint.dim(STAGE));
    let stories = stories();
    let mut right = 0;
    for (number, story) in stories.iter().enumerate() {
        println!(
            "\n{}",
            paint.bold(&format!("{}. {}", number + 1, story.title))
        );
        println!("   {}", paint.dim(story.plot));
        right += usize::from(tell(story, &binary, args, &paint).await?);
    }
    println!("\n{right} of {} stories came out right", stories.len());
    println!("{}", NEXT.trim_end());
    if right < stories.len() {
        bail!(
            "{} of {} stories came out wrong",
            stories.len() - right,
            stories.len()
        );
    }
    Ok(())
}

/// Plays one story with providers and a gateway of its own, so that none remembers another.
async fn tell(story: &Story, binary: &Path, args: &Args, paint: &Paint) -> Result<bool> {
    let providers = Providers::start(story).await?;
    let mut gateway = Running::start(binary, "demo", &providers.config(), Log::Followed).await?;
    let seen = caller::ask(gateway.address(), &story.ask).await?;
    let trail = Trail::read(&mut gateway, &seen.request_id).await?;
    gateway.stop().await?;
    println!("   caller saw  {}", seen.summary());
    for line in timeline::draw(&trail.attempts, paint) {
        println!("   {line}");
    }
    if args.log {
        for sentence in &trail.sentences {
            println!("   {}", paint.dim(&format!("log: {sentence}")));
        }
    }
    let faults = story.faults(&seen, &trail, &providers);
    for fault in &faults {
        println!("   {} {fault}", paint.bad("WRONG:"));
    }
    if faults.is_empty() {
        println!("   {} {}", paint.good("as it must be:"), story.moral);
    }
    Ok(faults.is_empty())
}

const STAGE: &str = "\
Three scripted providers on loopback: north and east speak OpenAI's dialect, south Anthropic's.
Each story gets them, and a gateway, anew; the caller is a plain OpenAI client.";

const NEXT: &str = "
Against a real provider:
  OPENAI_API_KEY=... cargo run --release -- serve
  curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \\
    -H 'x-backstop-trail: 1' \\
    -d '{\"model\":\"openai/gpt-4o-mini\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'
config/two-providers.toml shows routes, groups and substitutions.
";
