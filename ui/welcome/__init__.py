"""The welcome page: connect a model."""
