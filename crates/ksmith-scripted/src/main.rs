//! Serves a script until it is ended; prints its address as the first line.

#![expect(
    clippy::print_stdout,
    reason = "the address is what this program is asked for"
)]

use std::path::PathBuf;

use clap::Parser;
use ksmith_scripted::{Options, Script, ScriptedServer};

/// Serve a script of model answers in three wire formats on loopback
#[derive(Debug, Parser)]
struct Args {
    /// The script, as TOML
    script: PathBuf,
    /// The port; 0 is one of the system's choice
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Also serve on this Unix socket
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Let in this key only
    #[arg(long)]
    key: Option<String>,
    /// Write streamed answers in pieces of this many bytes
    #[arg(long)]
    piece_bytes: Option<usize>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let script = Script::parse(&std::fs::read_to_string(&args.script)?)?;
    let mut server = ScriptedServer::start(Options {
        script,
        key: args.key,
        piece_bytes: args.piece_bytes,
        port: args.port,
    })?;
    if let Some(path) = &args.socket {
        server.socket(path)?;
    }
    println!("{}", server.url());
    loop {
        std::thread::park();
    }
}
