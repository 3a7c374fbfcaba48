"""The desktop around the window: notifications, and other programs that open links and folders."""
