"""All SQL, files and migrations: metrics, records and artifacts, each behind one contract.

``access``: accounts, sessions, tokens, audit log.
``artifacts``: files under a key.
``backup``: a site in one file.
``changes``: version numbers that writers bump and readers cache by.
``data_folder``: lock, owner and permissions of the data folder.
``files``: atomic writes, lock files, temporary folders.
``metrics``: samples.
``moving``: moves a site to other stores and verifies the copy.
``records``: inventory, workloads, allocations, runs, documents.
"""
