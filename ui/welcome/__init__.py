"""The first screen: connect a model."""
