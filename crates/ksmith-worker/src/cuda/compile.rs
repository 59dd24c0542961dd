//! Compiles device code with NVRTC in a boxed process of its own: the compiler is a library, and its input is hostile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ksmith_box::{BoxSpec, Ended, Level, Limits, Profile, Role, RoleContext};
use serde::{Deserialize, Serialize};

use super::error::{CudaError, CudaFault};
use super::nvrtc;
use super::socket::Socket;

/// The role that compiles.
pub const COMPILE_ROLE: Role = Role {
    name: "nvrtc",
    before: None,
    run,
};

/// What to compile.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CompileOptions {
    /// File name and text of each source; the first is the program, the others are headers.
    pub sources: Vec<(String, String)>,
    /// Name expressions of the kernels to keep.
    pub kernels: Vec<String>,
    /// `sm_90a` and the like.
    pub arch: String,
    /// Further compiler options, all from the allow-list.
    pub flags: Vec<String>,
    /// Folders with headers of the toolkit, such as `/usr/local/cuda/include`.
    pub include: Vec<std::path::PathBuf>,
    /// Path of libnvrtc, or `None` for the loader's choice.
    pub library: Option<std::path::PathBuf>,
}

/// A compiled module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cubin {
    /// The module image.
    pub image: Vec<u8>,
    /// Lowered name of each name expression.
    pub lowered: BTreeMap<String, String>,
    /// Compiler output, capped.
    pub log: String,
    /// Wall time of the compilation in milliseconds.
    pub ms: f64,
}

#[derive(Serialize, Deserialize)]
enum Reply {
    Built(Cubin),
    Refused { log: String },
    Missing { message: String },
}

/// Compiles in a box. A refusal of the compiler is a [`CudaFault::Load`]; a compiler that is not there is
/// [`CudaError::Unavailable`].
pub fn compile(options: &CompileOptions, least: Level, unsandboxed: bool) -> Result<Cubin, CudaError> {
    let begin = Instant::now();
    let (mut socket, theirs) = Socket::pair().map_err(CudaError::io("making a socket pair"))?;
    let limits = Limits {
        wall: Some(Duration::from_secs(60)),
        cpu: Some(Duration::from_secs(60)),
        memory_bytes: Some(8 << 30),
        ..Limits::default()
    };
    let mut spec = BoxSpec::role(COMPILE_ROLE.name, Profile::Reference)
        .system()
        .fd(theirs)
        .limits(limits)
        .least(least);
    for folder in options.include.iter().chain(options.library.iter()) {
        // Its built-ins lie beside a library.
        let shown = if folder.is_file() {
            folder.parent().unwrap_or(folder)
        } else {
            folder
        };
        spec = spec.read_only(shown);
    }
    if unsandboxed {
        spec = spec.unsandboxed();
    }
    let mut child = ksmith_box::spawn(&spec)?;
    // Our copy of the other end must close, or a dead compiler would look like a slow one.
    drop(spec);
    socket
        .set_timeout(Duration::from_secs(60))
        .map_err(CudaError::io("setting a deadline"))?;
    let reply = socket.send(options, &[]).and_then(|()| socket.receive::<Reply>());
    match reply {
        Ok((Reply::Built(mut cubin), _)) => {
            cubin.ms = begin.elapsed().as_secs_f64() * 1e3;
            Ok(cubin)
        }
        Ok((Reply::Refused { log }, _)) => Err(CudaError::Fault(CudaFault::Load { message: log })),
        Ok((Reply::Missing { message }, _)) => Err(CudaError::Unavailable(message)),
        Err(_) => {
            let how = match child.wait(Instant::now() + Duration::from_secs(1)) {
                Ended::TimedOut => "the compiler gave no answer in time".to_owned(),
                ended => format!("the compiler ended: {ended:?}"),
            };
            child.kill();
            Err(CudaError::Fault(CudaFault::Load { message: how }))
        }
    }
}

fn run(context: &RoleContext) -> i32 {
    let Some(&fd) = context.fds.first() else { return 2 };
    let mut socket = Socket::from_fd(super::role::adopt(fd));
    let Ok((options, _)) = socket.receive::<CompileOptions>() else {
        return 2;
    };
    let reply = match nvrtc::build(&options) {
        Ok(nvrtc::Output { image, lowered, log }) => Reply::Built(Cubin {
            image,
            lowered,
            log,
            ms: 0.0,
        }),
        Err(nvrtc::Failure::Refused(log)) => Reply::Refused { log },
        Err(nvrtc::Failure::Missing(message)) => Reply::Missing { message },
    };
    i32::from(socket.send(&reply, &[]).is_err())
}
