"""Inventory, workloads and allocations: SQLite and PostgreSQL behind one contract."""
