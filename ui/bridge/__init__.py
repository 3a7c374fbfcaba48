"""Between the engine and the screens: the event loop, the frame clock, and facts as Qt signals."""
