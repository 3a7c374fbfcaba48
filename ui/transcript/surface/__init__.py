"""What the rows stand on: where they are, what of them is on the screen, what is selected, how it moves."""
