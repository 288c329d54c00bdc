"""Job traces: what their jobs are like, and what can be foretold of them. Pure; each file owns one question."""
