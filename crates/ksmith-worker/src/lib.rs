//! The protocol between judge and candidate, and its CPU and CUDA runners.
