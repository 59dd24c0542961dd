//! Splits a stream of server-sent events, wherever the network cut it.

/// One event, with the bytes that it came as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its bytes, the blank line that ends it included.
    pub raw: Vec<u8>,
    /// Its data lines, joined; empty for comments and keep-alives.
    pub data: String,
}

/// Collects bytes until an event is whole. Lines end with LF or CR LF; a lone CR, which no provider sends, does not
/// end a line.
#[derive(Debug, Clone, Default)]
pub struct Splitter {
    buffer: Vec<u8>,
    /// Where the line begins that is not whole yet.
    line: usize,
    /// How far the buffer was searched for a line feed.
    searched: usize,
}

impl Splitter {
    /// Takes bytes and gives the events that they complete. The raw bytes of all events, followed by
    /// [`rest`](Self::rest), are the bytes taken.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.buffer.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(at) = self.buffer[self.searched..]
            .iter()
            .position(|byte| *byte == b'\n')
        {
            let end = self.searched + at;
            let is_blank = matches!(&self.buffer[self.line..end], b"" | b"\r");
            (self.line, self.searched) = (end + 1, end + 1);
            if is_blank {
                let rest = self.buffer.split_off(self.line);
                let raw = std::mem::replace(&mut self.buffer, rest);
                (self.line, self.searched) = (0, 0);
                let data = data(&raw);
                events.push(Event { raw, data });
            }
        }
        self.searched = self.buffer.len();
        events
    }

    /// What was taken and belongs to no whole event.
    pub fn rest(&self) -> &[u8] {
        &self.buffer
    }
}

fn data(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let lines: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(|rest| rest.strip_prefix(' ').unwrap_or(rest))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8], cuts: &[usize]) -> (Vec<Event>, Vec<u8>) {
        let mut splitter = Splitter::default();
        let mut events = Vec::new();
        let (mut at, mut turn) = (0, 0);
        while at < bytes.len() {
            let end = (at + cuts[turn % cuts.len()].max(1)).min(bytes.len());
            events.extend(splitter.feed(&bytes[at..end]));
            (at, turn) = (end, turn + 1);
        }
        (events, splitter.rest().to_vec())
    }

    #[test]
    fn data_lines_are_joined_and_comments_kept() {
        let (events, rest) = all(
            b": ping\r\n\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\ndata: x",
            &[1000],
        );
        assert_eq!(
            events.iter().map(|event| event.data.as_str()).collect::<Vec<_>>(),
            ["", "1\n2"]
        );
        assert_eq!(rest, b"data: x");
    }

    proptest! {
        #[test]
        fn any_cuts_give_the_same_events_and_every_byte(
            bytes in proptest::collection::vec(prop_oneof![
                Just(b'\n'), Just(b'\r'), Just(b'd'), Just(b':'), Just(b' '), any::<u8>()], 0..400),
            cuts in proptest::collection::vec(1usize..40, 1..8),
        ) {
            let (events, rest) = all(&bytes, &cuts);
            let (whole, _) = all(&bytes, &[usize::MAX / 2]);
            prop_assert_eq!(&events, &whole);
            let mut joined: Vec<u8> = events.iter().flat_map(|event| event.raw.clone()).collect();
            joined.extend(&rest);
            prop_assert_eq!(joined, bytes);
        }
    }
}
