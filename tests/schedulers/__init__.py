"""Reference schedulers: slow and obviously right, to compare the compiled ones with."""
