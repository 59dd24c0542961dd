//! Prints the diagnosis of this machine as JSON; with `kernel`, launches the probe kernel; with `toolchain DIR`,
//! installs the private CUDA toolchain.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example for the terminal"
)]

use ksmith_machine::{Examination, LocalHost, examine, launch_probe_kernel, toolchain};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("kernel") => launch_probe_kernel()?,
        Some("toolchain") => {
            let folder = args.next().unwrap_or_else(|| "target/toolchain".to_owned());
            let host = LocalHost::new();
            let installed = toolchain::install(&host, folder.as_ref(), &mut |line| eprintln!("{line}"))?;
            println!("{}", serde_json::to_string_pretty(&installed)?);
        }
        _ => {
            let program = std::env::current_exe()?.to_string_lossy().into_owned();
            let (machine, diagnosis) = examine(Examination {
                data_dir: "target/toolchain".into(),
                kernel_program: Some(vec![program, "kernel".to_owned()]),
                ..Examination::default()
            });
            println!("{}", serde_json::to_string_pretty(&machine)?);
            println!("{}", serde_json::to_string_pretty(&diagnosis)?);
        }
    }
    Ok(())
}
