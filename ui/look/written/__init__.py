"""What others wrote, drawn as it is written: in its order, and with nothing hidden."""
