"""The one way to what lies in the web: addresses checked before they are asked, bounds on all that comes, and the
proxy of commands.
"""
