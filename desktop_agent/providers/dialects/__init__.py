"""One room per wire language: frames to canonical events, requests to JSON, listings to models."""
