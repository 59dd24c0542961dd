//! Workers that were started before they are needed: a context takes hundreds of milliseconds, and knows no candidate.

use std::thread::JoinHandle;

use ksmith_worker::cuda::{CudaError, Worker, WorkerOptions};

/// Workers that are ready or being started.
pub(super) struct Spares {
    options: WorkerOptions,
    coming: Vec<JoinHandle<Result<Worker, CudaError>>>,
    leaving: Vec<JoinHandle<()>>,
    ready: Vec<Worker>,
    /// How many are kept ready while nothing is timed.
    ahead: usize,
}

impl Spares {
    pub(super) fn new(options: WorkerOptions) -> Self {
        Self {
            options,
            coming: Vec::new(),
            leaving: Vec::new(),
            ready: Vec::new(),
            ahead: 0,
        }
    }

    /// Starts as many as are missing to `count`.
    pub(super) fn prepare(&mut self, count: usize) {
        let missing = count.saturating_sub(self.ready.len() + self.coming.len());
        for _ in 0..missing {
            let options = self.options.clone();
            self.coming
                .push(std::thread::spawn(move || Worker::start(&options)));
        }
    }

    /// Keeps `count` workers ready from now on, until the next [`Self::settle`].
    pub(super) fn keep(&mut self, count: usize) {
        self.ahead = count;
        self.prepare(count);
    }

    /// Ends a worker beside what the judge does next: the driver takes a while to clear a context away.
    pub(super) fn retire(&mut self, worker: Worker) {
        self.leaving.retain(|leaving| !leaving.is_finished());
        self.leaving.push(std::thread::spawn(move || drop(worker)));
    }

    /// Waits until nothing starts or ends any more. One that fails is forgotten: the start that needs one reports it.
    pub(super) fn settle(&mut self) {
        self.ahead = 0;
        self.gather();
        for leaving in self.leaving.drain(..) {
            let _ = leaving.join();
        }
    }

    fn gather(&mut self) {
        for coming in self.coming.drain(..) {
            if let Ok(Ok(worker)) = coming.join() {
                self.ready.push(worker);
            }
        }
    }

    pub(super) fn take(&mut self) -> Result<Worker, CudaError> {
        if self.ready.is_empty() {
            self.gather();
        }
        let worker = match self.ready.pop() {
            Some(worker) => Ok(worker),
            None => Worker::start(&self.options),
        };
        self.prepare(self.ahead);
        worker
    }
}
