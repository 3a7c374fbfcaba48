"""The window on its computer: tray, notifications, keys, links and files to open, spelling, updates, model files."""
