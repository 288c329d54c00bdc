"""One file per source: yields observations (model records) and knows nothing of the store."""
