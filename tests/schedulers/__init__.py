"""Schedulers as one would write them first: slow and obviously right, to compare the compiled ones with."""
