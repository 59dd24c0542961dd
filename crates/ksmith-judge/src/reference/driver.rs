//! The small programs around a trusted function: they read requests, map the data, call, and acknowledge.
//!
//! A request is one block of 8-byte words on descriptor 4: total bytes of the data file (descriptor 3), an offset and
//! the sizes of each tensor, one word per scalar, one per axis. The answer is one word on descriptor 5.

use std::fmt::Write as _;

use super::program::{Argument, Kind, Signature};

fn c_type(argument: &Argument) -> String {
    let base = match argument.kind {
        Kind::Real => "double",
        Kind::Whole => "int64_t",
    };
    let constant = if argument.written { "" } else { "const " };
    format!("{constant}{base} *")
}

/// The C driver for `entry` with this signature.
pub(crate) fn c_driver(entry: &str, signature: &Signature) -> String {
    let places = signature.places();
    let scalars = signature.words() - signature.scalars.len() - signature.axes;
    let words = signature.words();
    let mut prototype: Vec<String> = signature.tensors.iter().map(c_type).collect();
    prototype.extend(signature.scalars.iter().map(|kind| match kind {
        Kind::Real => "double".to_owned(),
        Kind::Whole => "int64_t".to_owned(),
    }));
    prototype.extend((0..signature.axes).map(|_| "int64_t".to_owned()));
    let mut call = Vec::new();
    for (argument, place) in signature.tensors.iter().zip(places) {
        call.push(format!("({})(base + w[{place}])", c_type(argument)));
    }
    for (index, kind) in signature.scalars.iter().enumerate() {
        let word = format!("w[{}]", scalars + index);
        call.push(match kind {
            Kind::Real => format!("as_double({word})"),
            Kind::Whole => format!("(int64_t){word}"),
        });
    }
    for index in 0..signature.axes {
        call.push(format!(
            "(int64_t)w[{}]",
            scalars + signature.scalars.len() + index
        ));
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "#include <stdint.h>\n#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
         extern void {entry}({});\n\
         static inline double as_double(uint64_t bits) {{ double d; memcpy(&d, &bits, 8); return d; }}\n\
         static int all(int fd, void *to, size_t n) {{\n\
         \x20 char *at = to;\n\
         \x20 while (n) {{ ssize_t got = read(fd, at, n); if (got <= 0) return 0; at += got; n -= (size_t)got; }}\n\
         \x20 return 1;\n}}\n\
         int main(void) {{\n\
         \x20 static uint64_t w[{words}];\n\
         \x20 (void)as_double;\n\
         \x20 while (all(4, w, sizeof w)) {{\n\
         \x20   char *base = mmap(0, w[0], PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);\n\
         \x20   if (base == MAP_FAILED) return 71;\n\
         \x20   {entry}({});\n\
         \x20   munmap(base, w[0]);\n\
         \x20   uint64_t done = 1;\n\
         \x20   if (write(5, &done, 8) != 8) return 72;\n\
         \x20 }}\n\
         \x20 return 0;\n}}\n",
        if prototype.is_empty() {
            "void".to_owned()
        } else {
            prototype.join(", ")
        },
        call.join(", "),
    );
    text
}

/// The Python driver: NumPy arrays by keyword, in the order of the signature; results are copied back.
pub(crate) fn python_driver(module: &str, entry: &str, signature: &Signature) -> String {
    let tensor = |argument: &Argument| {
        let kind = match argument.kind {
            Kind::Real => "float64",
            Kind::Whole => "int64",
        };
        let written = if argument.written { "True" } else { "False" };
        format!("({kind:?}, {}, {written})", argument.rank)
    };
    let tensors: Vec<String> = signature.tensors.iter().map(tensor).collect();
    let scalars: Vec<&str> = signature
        .scalars
        .iter()
        .map(|kind| match kind {
            Kind::Real => "\"d\"",
            Kind::Whole => "\"q\"",
        })
        .collect();
    format!(
        r#"import importlib.util, mmap, os, struct, sys
import numpy
TENSORS = [{tensors}]
SCALARS = [{scalars}]
AXES = {axes}
spec = importlib.util.spec_from_file_location("trusted", {module:?})
trusted = importlib.util.module_from_spec(spec)
spec.loader.exec_module(trusted)
call = getattr(trusted, {entry:?})
words = {words}
def request():
    data = b""
    while len(data) < 8 * words:
        part = os.read(4, 8 * words - len(data))
        if not part:
            sys.exit(0)
        data += part
    return struct.unpack("<%dQ" % words, data)
while True:
    w = request()
    data = mmap.mmap(3, w[0])
    arguments = []
    written = []
    base = 1
    for kind, rank, out in TENSORS:
        shape = w[base + 1:base + 1 + rank]
        array = numpy.ndarray(shape, dtype=kind, buffer=data, offset=w[base])
        (written if out else arguments).append(array)
        base += 1 + rank
    for i, kind in enumerate(SCALARS):
        arguments.append(struct.unpack("<" + kind, struct.pack("<Q", w[base + i]))[0])
    base += len(SCALARS)
    axes = [struct.unpack("<q", struct.pack("<Q", w[base + i]))[0] for i in range(AXES)]
    result = call(*arguments, *axes)
    if not isinstance(result, (tuple, list)):
        result = (result,)
    if len(result) != len(written):
        sys.exit("expected %d results, got %d" % (len(written), len(result)))
    for array, value in zip(written, result):
        if hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        value = numpy.ascontiguousarray(value, dtype=array.dtype).reshape(-1)
        if value.size != array.size:
            sys.exit("a result has %d elements, expected %d" % (value.size, array.size))
        array[...] = value.reshape(array.shape)
    del array, arguments, written, result
    data.close()
    os.write(5, struct.pack("<Q", 1))
"#,
        tensors = tensors.join(", "),
        scalars = scalars.join(", "),
        axes = signature.axes,
        words = signature.words(),
    )
}
