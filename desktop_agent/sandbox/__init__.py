"""The confinement of commands and worker processes: bubblewrap, Landlock and seccomp, the policy of one command, and
what it protects.
"""
