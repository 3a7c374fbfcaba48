"""What the views of an approval are made of: texts that know how much room they need, rows that wrap, one scroll."""
