"""A script, written down in each dialect: as a stream of events, or in one piece."""
