"""The only home of SQL, files and migrations: metrics and records behind one contract each."""
