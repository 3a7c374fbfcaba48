"""One folder per dialect: requests to JSON, streams to provider events, listings to models."""
