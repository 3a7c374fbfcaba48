"""The desktop and the computer: notifications, keys, links, autostart, updates, crash reports, model files."""
