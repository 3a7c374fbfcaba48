"""What a file is at one moment, and how it becomes again what it was."""
