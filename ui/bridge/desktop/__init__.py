"""What the computer gives or keeps: notifications, keys, links, autostart, updates, crash reports, model files."""
