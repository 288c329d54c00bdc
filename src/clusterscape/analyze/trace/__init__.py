"""Span tables: matching, alignment, breakdowns, critical path, what-if, verdicts. Pure: tables in, tables out."""
