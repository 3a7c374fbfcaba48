"""Child processes, worker threads and code that is not ours: run it, end it, and keep its failures away from the event
loop.
"""
