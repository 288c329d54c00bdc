"""Scheduling engines, policies and placements: jobs and faults in, schedules out; no clock, no chance of their own."""
