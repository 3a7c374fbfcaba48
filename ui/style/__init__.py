"""Theme, style sheet, icons, and the widgets that more than one pane uses."""
