"""Each a comparison with a peer in one run, and a stated budget."""
