//! What compiler and profiler say about a kernel.
