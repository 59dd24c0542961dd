//! Writers and reviewers: command-line agents, plain APIs, model gateway, tool gateway.
