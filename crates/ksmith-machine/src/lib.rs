//! What this machine is: tools, devices, clocks, noise.
