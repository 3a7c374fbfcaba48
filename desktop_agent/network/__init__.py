"""The one way to what lies in the web: addresses looked at before they are asked, and a bound on all that comes."""
