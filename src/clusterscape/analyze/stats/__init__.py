"""Statistics of metrics over lives: the contract rules are judged by, the exact form and the mergeable sketch."""
