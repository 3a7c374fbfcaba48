"""What is done while nobody works with the program and it works for nobody."""
