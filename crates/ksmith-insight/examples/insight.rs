//! Prints what is found: `insight ncu FILE.csv`, `insight sass FILE`, `insight ptxas FILE`, `insight so FILE`.
#![expect(clippy::print_stdout, reason = "an example for the terminal")]

use ksmith_insight::{digest, ncu, ptxas, reading, sass, x86};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let kind = args.next().ok_or("a kind is missing: ncu, sass, ptxas or so")?;
    let file = args.next().ok_or("a file is missing")?;
    match kind.as_str() {
        "so" => {
            let analysis = x86::analyse(file.as_ref(), x86::Options::default());
            println!("{}", serde_json::to_string_pretty(&analysis)?);
        }
        "sass" => {
            let code = sass::analyse(&std::fs::read_to_string(file)?, sass::Expect::default());
            println!("{}", serde_json::to_string_pretty(&code)?);
        }
        "ptxas" => println!(
            "{}",
            serde_json::to_string_pretty(&ptxas::parse(&std::fs::read_to_string(file)?))?
        ),
        "ncu" => {
            for kernel in ncu::import(&std::fs::read_to_string(file)?)?.kernels {
                let read = reading::read(&kernel, reading::Context::default());
                println!("{}", digest(&kernel, &read).text);
            }
        }
        other => return Err(format!("`{other}` is not ncu, sass, ptxas or so").into()),
    }
    Ok(())
}
