"""A theme as Qt's palette, for everything that a style sheet does not reach."""

from PySide6.QtGui import QColor, QPalette

from ui.look.theme import Theme


def palette_for(theme: Theme) -> QPalette:
    """The palette of the Fusion style; disabled text is muted."""
    role = QPalette.ColorRole
    palette = QPalette()
    for where, colour in {
        role.Window: theme.window,
        role.WindowText: theme.text,
        role.Base: theme.window,
        role.AlternateBase: theme.surface,
        role.Text: theme.text,
        role.PlaceholderText: theme.muted,
        role.Button: theme.surface,
        role.ButtonText: theme.text,
        role.BrightText: theme.danger,
        role.ToolTipBase: theme.surface,
        role.ToolTipText: theme.text,
        role.Highlight: theme.selection,
        role.HighlightedText: theme.text,
        role.Accent: theme.accent,
        role.Link: theme.link,
        role.LinkVisited: theme.link,
        role.Light: theme.hover,
        role.Midlight: theme.hover,
        role.Mid: theme.border,
        role.Dark: theme.border,
        role.Shadow: theme.border,
    }.items():
        palette.setColor(where, QColor(colour))
    for where in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, where, QColor(theme.muted))
    return palette
