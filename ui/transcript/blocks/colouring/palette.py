"""Colours by what a word is. Each reaches 4.5:1 on the code background of its theme."""

SYNTAX_COLORS = {
    False: {
        "comment": "#6a6a63",
        "keyword": "#8a2fa8",
        "function": "#1a55b8",
        "builtin": "#0b6a73",
        "string": "#2b6e21",
        "number": "#9a4a06",
    },
    True: {
        "comment": "#8f9299",
        "keyword": "#d6a0f0",
        "function": "#8fb8ff",
        "builtin": "#7fd0d6",
        "string": "#a8d08d",
        "number": "#f0b080",
    },
}
