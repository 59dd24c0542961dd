//! Python and PyTorch: for `.py` references and for peers. Nothing else here needs them.

use std::time::Duration;

use crate::compiler::version_in;
use crate::host::{Command, Ended};

use super::{Probes, Row, State};

const TORCH: &str = "pytorch";

/// Prints version, CUDA version of the build, and whether a device answers.
const TORCH_PROBE: &str = "import torch\n\
                           print(torch.__version__, torch.version.cuda, torch.cuda.is_available())";

pub(super) fn rows(probes: &Probes<'_>) -> Vec<Row> {
    let python = python(probes);
    let torch = if python.state == State::Missing {
        Row::new(TORCH, State::Missing, "needs Python").fix("see `python`")
    } else {
        torch(probes)
    };
    vec![python, torch]
}

fn python(probes: &Probes<'_>) -> Row {
    let output = probes
        .host
        .run(&Command::new("python3", ["--version"]).limit(Duration::from_secs(10)));
    let install = "apt-get install python3 python3-venv";
    match output.ended {
        Ended::NotFound => {
            return Row::new(
                "python",
                State::Missing,
                "needed only for `.py` references, PyTorch peers and the CUDA wheels",
            )
            .fix(install);
        }
        Ended::TimedOut => {
            return Row::new(
                "python",
                State::Limited,
                "`python3 --version` did not answer within 10 s",
            )
            .fix("type -a python3");
        }
        Ended::Exited(_) | Ended::NotStarted => {}
    }
    // Python 2 and some early 3 print their version on standard error.
    let Some(version) = version_in(&output.both()) else {
        return Row::new("python", State::Limited, "`python3 --version` gave no version").fix(install);
    };
    let numbers: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    if numbers.as_slice() < [3, 10].as_slice() {
        return Row::new(
            "python",
            State::Limited,
            format!("Python {version}; 3.10 or newer is needed"),
        )
        .fix(install);
    }
    Row::new("python", State::Ok, format!("Python {version}"))
}

fn torch(probes: &Probes<'_>) -> Row {
    let gpu = !probes.machine.gpus.is_empty();
    let install = "python3 -m pip install torch";
    let known = probes.host.run(
        &Command::new(
            "python3",
            [
                "-c",
                "import importlib.util as u; print(u.find_spec('torch') is not None)",
            ],
        )
        .limit(Duration::from_secs(20)),
    );
    if known.success().is_none_or(|text| text.trim() != "True") {
        let finding = "not installed; needed only for PyTorch references and peers";
        return Row::new(TORCH, State::Missing, finding).fix(install);
    }
    // A first import reads some gigabytes from disk.
    let output = probes
        .host
        .run(&Command::new("python3", ["-c", TORCH_PROBE]).limit(Duration::from_secs(90)));
    if output.ended == Ended::TimedOut {
        return Row::new(TORCH, State::Limited, "`import torch` did not finish within 90 s")
            .fix("python3 -c 'import torch'");
    }
    let words: Vec<&str> = output
        .success()
        .map(|text| text.split_whitespace().collect())
        .unwrap_or_default();
    let [version, cuda, available] = words[..] else {
        let line = output
            .stderr
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("no message")
            .to_owned();
        return Row::new(TORCH, State::Limited, format!("`import torch` fails: {line}"))
            .fix("python3 -m pip install --force-reinstall torch");
    };
    match (cuda, available) {
        ("None", _) if gpu => Row::new(
            TORCH,
            State::Limited,
            format!("PyTorch {version} is built without CUDA"),
        )
        .fix("python3 -m pip install --force-reinstall torch"),
        ("None", _) => Row::new(TORCH, State::Ok, format!("PyTorch {version}, for the CPU")),
        (_, "True") => Row::new(TORCH, State::Ok, format!("PyTorch {version} with CUDA {cuda}")),
        (_, _) if gpu => Row::new(
            TORCH,
            State::Limited,
            format!("PyTorch {version} is built for CUDA {cuda} and cannot use the device"),
        )
        .fix("python3 -c 'import torch; torch.cuda.init()'"),
        (_, _) => Row::new(
            TORCH,
            State::Ok,
            format!("PyTorch {version} for CUDA {cuda}; no device here, so on the CPU"),
        ),
    }
}
