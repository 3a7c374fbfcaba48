"""The desktop around the window: notifications, and the icon in the tray."""
