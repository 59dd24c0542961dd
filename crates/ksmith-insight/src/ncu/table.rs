//! The CSV text itself (owns the crate `csv`).

use super::ImportError;

/// Header, units and rows of a raw page.
pub(super) struct Table {
    pub(super) header: Vec<String>,
    pub(super) units: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Most bytes of a report that are read.
const BYTE_CAP: usize = 64 << 20;

pub(super) fn read(text: &str) -> Result<Table, ImportError> {
    if text.len() > BYTE_CAP {
        return Err(ImportError::TooLarge(text.len()));
    }
    // The profiler's own lines (`==PROF== …`) and the program's output come before the table.
    let start = text
        .lines()
        .scan(0usize, |offset, line| {
            let here = *offset;
            *offset += line.len() + 1;
            Some((here, line))
        })
        .find(|(_, line)| line.starts_with("\"ID\",") || line.starts_with("ID,"))
        .map(|(offset, _)| offset)
        .ok_or(ImportError::NoTable)?;
    let body = text.get(start..).ok_or(ImportError::NoTable)?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(body.as_bytes());
    let mut records = reader.records();
    let mut next = || -> Result<Option<Vec<String>>, ImportError> {
        match records.next() {
            None => Ok(None),
            Some(Ok(record)) => Ok(Some(record.iter().map(str::to_owned).collect())),
            Some(Err(error)) => Err(ImportError::Malformed(error.to_string())),
        }
    };
    let header = next()?.ok_or(ImportError::NoTable)?;
    if header.iter().any(|name| name == "Metric Name") {
        return Err(ImportError::WrongPage);
    }
    let units = next()?.ok_or(ImportError::NoRows)?;
    let mut rows = Vec::new();
    let mut short = None;
    while let Some(row) = next()? {
        // Lines of the profiler may follow the table.
        if row.len() == 1 && row[0].starts_with("==") {
            continue;
        }
        if row.len() == header.len() {
            rows.push(row);
        } else {
            short.get_or_insert((row.len(), header.len()));
        }
    }
    match (rows.is_empty(), short) {
        (_, Some((got, wanted))) => Err(ImportError::Cut { got, wanted }),
        (true, None) => Err(ImportError::NoRows),
        (false, None) => Ok(Table { header, units, rows }),
    }
}
