//! Records from other threads: whoever works for a session asks for a record, and the session appends it.
//!
//! The session alone owns the ledger. A gateway or tool server runs on threads of its own and must have its record on
//! disk *before* it answers, so it sends a wish and waits; the session's thread grants wishes while it waits for the
//! work that causes them.

use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use ksmith_ledger::{BlobRef, Entry, ObjectStore};

/// What comes over the channel.
enum Wish {
    /// Append this and say how that went.
    Append(Box<Entry>, SyncSender<Result<(), String>>),
    /// The work that was waited for is over.
    Finished,
}

/// The asking end; clones ask the same session.
#[derive(Clone)]
pub struct Recorder {
    sender: Sender<Wish>,
    objects: ObjectStore,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

/// The granting end.
pub struct Wishes {
    receiver: Receiver<Wish>,
    sender: Sender<Wish>,
}

/// Makes both ends for the run whose objects these are.
pub fn recorder(objects: ObjectStore) -> (Recorder, Wishes) {
    let (sender, receiver) = channel();
    let recorder = Recorder {
        sender: sender.clone(),
        objects,
    };
    (recorder, Wishes { receiver, sender })
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the run is over")
}

impl Recorder {
    /// Appends a record; returns once it is on disk.
    ///
    /// # Errors
    /// When it could not be written, or the run is over.
    pub fn append(&self, entry: impl Into<Entry>) -> io::Result<()> {
        let (done, answer) = sync_channel(1);
        let wish = Wish::Append(Box::new(entry.into()), done);
        self.sender.send(wish).map_err(|_| gone())?;
        match answer.recv() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(cause)) => Err(io::Error::other(cause)),
            Err(_) => Err(gone()),
        }
    }

    /// Stores bytes in the run's object store; returns once they are on disk.
    ///
    /// # Errors
    /// When they could not be written.
    pub fn put(&self, bytes: &[u8]) -> io::Result<BlobRef> {
        self.objects.put(bytes).map_err(io::Error::other)
    }
}

/// Says that the work is over, also when it panics.
struct Finish(Sender<Wish>);

impl Drop for Finish {
    fn drop(&mut self) {
        // Nobody listens only where the session is gone as well.
        let _ = self.0.send(Wish::Finished);
    }
}

impl Wishes {
    /// Grants what is asked for just now, without waiting: answers of calls whose caller is gone come late.
    pub fn grant_waiting(&self, mut append: impl FnMut(Entry) -> Result<(), String>) {
        for wish in self.receiver.try_iter() {
            if let Wish::Append(entry, done) = wish {
                let _ = done.send(append(*entry));
            }
        }
    }

    /// Does `work` on a thread of its own and grants wishes until it is over.
    pub fn attend<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
        mut append: impl FnMut(Entry) -> Result<(), String>,
    ) -> std::thread::Result<T> {
        let finish = Finish(self.sender.clone());
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                let _finish = finish;
                work()
            });
            for wish in &self.receiver {
                match wish {
                    Wish::Append(entry, done) => {
                        // One who no longer waits has its record all the same.
                        let _ = done.send(append(*entry));
                    }
                    Wish::Finished => break,
                }
            }
            thread.join()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ksmith_ledger::Note;

    fn note(text: &str) -> Note {
        Note {
            text: text.into(),
            data: serde_json::Value::Null,
        }
    }

    #[test]
    fn records_of_several_threads_are_appended_before_they_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, wishes) = recorder(ObjectStore::new(folder.path()));
        let mut appended = Vec::new();
        let result = wishes.attend(
            || {
                std::thread::scope(|scope| {
                    for name in ["a", "b"] {
                        let recorder = recorder.clone();
                        scope.spawn(move || (0..3).for_each(|_| recorder.append(note(name)).unwrap()));
                    }
                });
                recorder.put(b"bytes").unwrap()
            },
            |entry| {
                appended.push(entry);
                Ok(())
            },
        );
        assert_eq!(result.unwrap().bytes, 5);
        assert_eq!(appended.len(), 6);
    }

    #[test]
    fn a_record_that_cannot_be_written_is_an_error_for_whoever_asked() {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, wishes) = recorder(ObjectStore::new(folder.path()));
        let result = wishes.attend(|| recorder.append(note("x")), |_| Err("full".into()));
        assert_eq!(result.unwrap().unwrap_err().to_string(), "full");
        drop(wishes);
        assert_eq!(
            recorder.append(note("x")).unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
    }

    #[test]
    fn what_comes_after_the_work_is_granted_when_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, wishes) = recorder(ObjectStore::new(folder.path()));
        let late = std::thread::spawn(move || recorder.append(note("late")));
        let mut appended = Vec::new();
        while appended.is_empty() {
            wishes.grant_waiting(|entry| {
                appended.push(entry);
                Ok(())
            });
        }
        late.join().unwrap().unwrap();
        assert_eq!(appended, [Entry::from(note("late"))]);
    }

    #[test]
    fn work_that_panics_ends_the_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let (_recorder, wishes) = recorder(ObjectStore::new(folder.path()));
        assert!(wishes.attend(|| panic!("asked to"), |_| Ok(())).is_err());
    }
}
