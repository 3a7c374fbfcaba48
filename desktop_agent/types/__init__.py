"""Types shared by all floors: messages, events, requests, tool calls, rules, options, preferences and errors; no input
or output.
"""
