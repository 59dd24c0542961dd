//! Causes that do not belong to one gate: what any call may end with, and that the judge could not run a check.

use super::{Cause, cause};

/// What any call of a candidate may end with.
pub(super) const CALL: [Cause; 19] = [
    cause(
        "wrong-value",
        "A finite output element lies outside `atol + rtol*|ref| + ctol*scale`.",
        "A softmax without subtraction of the maximum.",
        "Correct the mathematics; on dev cases the evidence shows the worst element.",
    ),
    cause(
        "non-finite",
        "NaN or infinity where the rounded reference has none, or the other way round.",
        "An exponential that overflows on large inputs.",
        "Keep intermediate values in range.",
    ),
    cause(
        "wrong-integer",
        "An integer or bool output differs from the reference.",
        "Truncation where the contract rounds.",
        "Use the rounding that the contract names.",
    ),
    cause(
        "wrong-index",
        "A chosen index is out of range, repeated, not among the best, or out of order.",
        "A top-k that returns one index twice.",
        "Choose distinct indices by falling score.",
    ),
    cause(
        "checker",
        "The task's own checker refused an element.",
        "A factorisation with a large residual.",
        "See the checker in the task's folder.",
    ),
    cause(
        "unwritten",
        "An output element still holds what the judge put there: it was never written, or computed from that.",
        "A tail loop that stops one vector early.",
        "Write every element of every output, and read none first.",
    ),
    cause(
        "gap-write",
        "Bytes between the rows of a strided output were changed.",
        "A full-width vector store at the end of a padded row.",
        "Store only the elements of the row.",
    ),
    cause(
        "late-write",
        "An output changed after the call had returned.",
        "A thread that goes on computing.",
        "Finish all work before returning.",
    ),
    cause(
        "crash",
        "A signal ended the worker.",
        "A read past the end of an input that hits the guard page.",
        "Stay inside the buffers named in the evidence.",
    ),
    cause(
        "input-write",
        "A read-only input was written to.",
        "An in-place reduction on the input.",
        "Copy to memory of your own.",
    ),
    cause(
        "canary",
        "Bytes directly around a buffer were changed.",
        "A store one element too far.",
        "Stay inside the buffer and side named in the evidence.",
    ),
    cause(
        "timeout",
        "The call did not answer in time.",
        "A loop without end.",
        "Terminate; deadlines are far above the champion's time.",
    ),
    cause(
        "out-of-memory",
        "The worker used more memory than its box has.",
        "An allocation that grows with each call.",
        "Use less scratch memory and free it.",
    ),
    cause(
        "forbidden-call",
        "A system call outside the worker's list.",
        "Opening a file or a socket.",
        "Compute only.",
    ),
    cause(
        "exited",
        "The worker ended by itself.",
        "A call of `exit`.",
        "Return from the entry function.",
    ),
    cause(
        "control-bits",
        "Rounding mode, flush-to-zero or exception masks were left changed.",
        "Setting FTZ for speed and leaving it set.",
        "Restore MXCSR before returning.",
    ),
    cause(
        "load",
        "The library could not be loaded or lacks the entry.",
        "An undefined symbol.",
        "Define what you call; export the entry as C.",
    ),
    cause(
        "plan",
        "The launch plan cannot be right for this shape or kernel, or the driver refuses it.",
        "A grid of zero blocks; an argument of the wrong size.",
        "Correct what the evidence names.",
    ),
    cause(
        "protocol",
        "The worker broke the protocol with the judge.",
        "Overwriting the shared control words.",
        "Do not touch memory that is not yours.",
    ),
];

pub(super) const UNABLE: Cause = cause(
    "could-not-run",
    "The judge could not run this check: no statement about the candidate.",
    "The sandbox is weaker than the task demands.",
    "Fix the machine; the evidence names the cause.",
);
