"""What the kernel holds a process to that has closed itself in, for good: Landlock, and filters of system calls."""
