"""The accessible tree of the transcript, for screen readers."""
