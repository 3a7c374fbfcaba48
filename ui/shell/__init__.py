"""The window, its actions and its banners."""
