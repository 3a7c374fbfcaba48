"""The sandbox of commands and worker processes: bubblewrap, Landlock, seccomp, and the policy of one command."""
