"""The page of scheduled prompts."""
