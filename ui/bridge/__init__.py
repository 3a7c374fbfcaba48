"""The bridge between engine and screens: event loop, frame clock, and the engine's facts as Qt signals."""
