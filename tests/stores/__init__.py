"""Samples and stores that tests of the metric stores share."""
