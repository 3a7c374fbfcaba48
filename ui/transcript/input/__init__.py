"""What a person does: the mouse, the wheel, the keys, the menu, the clipboard."""
