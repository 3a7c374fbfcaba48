"""Child processes, worker threads and foreign code: run it, end it, and contain its failures."""
