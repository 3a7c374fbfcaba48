"""The page of usage: tokens and cost by day, model and project, and the budgets."""
