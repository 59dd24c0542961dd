//! A live trusted process that computes case after case.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ksmith_box::Child;
use rayon::prelude::*;

use super::error::ReferenceError;
use super::program::{Kind, Program};
use crate::number::Values;

/// A scalar argument of a trusted function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// `double`.
    Real(f64),
    /// `int64_t`.
    Whole(i64),
}

/// A running trusted function; killed when dropped.
#[derive(Debug)]
pub struct Live {
    program: Program,
    child: Child,
    data: File,
    size: u64,
    requests: io::PipeWriter,
    answers: mpsc::Receiver<bool>,
    limit: Duration,
}

/// Where tensors start in the data file.
const ALIGN: u64 = 64;

impl Live {
    /// Starts the program in its box; `limit` is the time that one case may take.
    ///
    /// # Errors
    /// When the box cannot be made.
    pub fn start(program: &Program, limit: Duration) -> Result<Self, ReferenceError> {
        let data = tempfile::tempfile_in("/dev/shm")
            .or_else(|_| tempfile::tempfile())
            .map_err(ReferenceError::io("could not make the data file"))?;
        let (request_reader, requests) = io::pipe().map_err(ReferenceError::io("could not make a pipe"))?;
        let (mut answer_reader, answer_writer) =
            io::pipe().map_err(ReferenceError::io("could not make a pipe"))?;
        let shared = data
            .as_fd()
            .try_clone_to_owned()
            .map_err(ReferenceError::io("could not share the data file"))?;
        let spec = program
            .spec()
            .fd(shared)
            .fd(OwnedFd::from(request_reader))
            .fd(OwnedFd::from(answer_writer));
        let child = ksmith_box::spawn(&spec)?;
        // The specification holds our copies of the child's pipe ends: its death must close the last ones.
        drop(spec);
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let mut word = [0; 8];
            loop {
                let good = answer_reader.read_exact(&mut word).is_ok();
                if sender.send(good).is_err() || !good {
                    return;
                }
            }
        });
        Ok(Self {
            program: program.clone(),
            child,
            data,
            size: 0,
            requests,
            answers,
            limit,
        })
    }

    /// Computes one case. `inputs` are the read-only tensors in order with their sizes; the result holds the written
    /// tensors in order, whose sizes are `outputs`. Written tensors start as zeros.
    ///
    /// # Errors
    /// When a length is wrong, or the program ends or takes too long.
    pub fn call(
        &mut self,
        inputs: &[(&Values, &[usize])],
        outputs: &[&[usize]],
        scalars: &[Scalar],
        axes: &[i64],
    ) -> Result<Vec<Values>, ReferenceError> {
        let signature = self.program.signature.clone();
        let (mut inputs, mut outputs_left) = (inputs.iter(), outputs.iter());
        let mut words = vec![0u64];
        let mut end = 0u64;
        let mut writes = Vec::new();
        let mut reads = Vec::new();
        for argument in &signature.tensors {
            let none: &[usize] = &[];
            let shape = if argument.written {
                outputs_left.next().copied().unwrap_or(none)
            } else {
                let (values, shape) = inputs.next().ok_or_else(|| length(&argument.name, 0, 1))?;
                let want = shape.iter().product();
                if values.len() != want {
                    return Err(length(&argument.name, values.len(), want));
                }
                writes.push((end, *values, argument.kind));
                shape
            };
            if shape.len() != argument.rank {
                return Err(length(&argument.name, shape.len(), argument.rank));
            }
            let count: usize = shape.iter().product();
            if argument.written {
                reads.push((end, count, argument.kind));
            }
            words.push(end);
            words.extend(shape.iter().map(|size| *size as u64));
            end += (count as u64 * 8).next_multiple_of(ALIGN);
        }
        let total = end.max(ALIGN);
        words[0] = total;
        words.extend(scalars.iter().map(|scalar| match scalar {
            Scalar::Real(value) => value.to_bits(),
            Scalar::Whole(value) => *value as u64,
        }));
        words.extend(axes.iter().map(|axis| *axis as u64));
        if words.len() != signature.words() {
            return Err(length("scalars and axes", words.len(), signature.words()));
        }
        if total > self.size {
            self.data
                .set_len(total)
                .map_err(ReferenceError::io("could not grow the data file"))?;
            self.size = total;
        }
        for (offset, values, kind) in writes {
            write(&self.data, offset, values, kind)?;
        }
        for (offset, count, _) in &reads {
            let zeros = vec![0u8; 1 << 16];
            let mut left = count * 8;
            let mut at = *offset;
            while left > 0 {
                let part = left.min(zeros.len());
                self.data
                    .write_all_at(&zeros[..part], at)
                    .map_err(ReferenceError::io("could not clear the reference's outputs"))?;
                left -= part;
                at += part as u64;
            }
        }
        let request: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if self.requests.write_all(&request).is_err() {
            return Err(self.ended());
        }
        match self.answers.recv_timeout(self.limit) {
            Ok(true) => {}
            Ok(false) | Err(mpsc::RecvTimeoutError::Disconnected) => return Err(self.ended()),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                self.child.kill();
                return Err(ReferenceError::TimedOut {
                    path: self.program.source.clone(),
                    seconds: self.limit.as_secs(),
                });
            }
        }
        reads
            .into_iter()
            .map(|(offset, count, kind)| read(&self.data, offset, count, kind))
            .collect()
    }

    fn ended(&mut self) -> ReferenceError {
        let ended = self.child.wait(Instant::now() + Duration::from_secs(2));
        ReferenceError::Ended {
            path: self.program.source.clone(),
            ended,
            log: String::new(),
        }
    }
}

fn length(name: &str, got: usize, want: usize) -> ReferenceError {
    ReferenceError::Length {
        name: name.to_owned(),
        got,
        want,
    }
}

/// Elements converted at once.
const PART: usize = 1 << 15;

fn write(data: &File, offset: u64, values: &Values, kind: Kind) -> Result<(), ReferenceError> {
    let parts = values.len().div_ceil(PART);
    (0..parts)
        .into_par_iter()
        .try_for_each(|part| {
            let (from, to) = (part * PART, ((part + 1) * PART).min(values.len()));
            let bytes: Vec<u8> = match (values, kind) {
                (Values::Real(values), Kind::Real) => values[from..to]
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect(),
                (Values::Whole(values), Kind::Whole) => values[from..to]
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect(),
                (Values::Real(values), Kind::Whole) => values[from..to]
                    .iter()
                    .flat_map(|value| (*value as i64).to_le_bytes())
                    .collect(),
                (Values::Whole(values), Kind::Real) => values[from..to]
                    .iter()
                    .flat_map(|value| (*value as f64).to_le_bytes())
                    .collect(),
            };
            data.write_all_at(&bytes, offset + 8 * from as u64)
        })
        .map_err(ReferenceError::io("could not write the reference's inputs"))
}

fn read(data: &File, offset: u64, count: usize, kind: Kind) -> Result<Values, ReferenceError> {
    let read_words = |from: usize, to: usize| -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 8 * (to - from)];
        data.read_exact_at(&mut bytes, offset + 8 * from as u64)?;
        Ok(bytes)
    };
    let error = ReferenceError::io("could not read the reference's outputs");
    match kind {
        Kind::Real => {
            let mut values = vec![0.0f64; count];
            values
                .par_chunks_mut(PART)
                .enumerate()
                .try_for_each(|(part, slots)| {
                    let bytes = read_words(part * PART, part * PART + slots.len())?;
                    for (slot, raw) in slots.iter_mut().zip(bytes.as_chunks::<8>().0) {
                        *slot = f64::from_le_bytes(*raw);
                    }
                    Ok(())
                })
                .map_err(error)?;
            Ok(Values::Real(values))
        }
        Kind::Whole => {
            let bytes = read_words(0, count).map_err(error)?;
            Ok(Values::Whole(
                bytes
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|raw| i64::from_le_bytes(*raw))
                    .collect(),
            ))
        }
    }
}
