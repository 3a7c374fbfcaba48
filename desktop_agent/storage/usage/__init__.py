"""What models used, by day, model and project: kept as answers end, whatever becomes of their conversations."""
