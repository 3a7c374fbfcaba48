"""Between the engine and the screens: the loop, the frame clock, and facts as signals."""
