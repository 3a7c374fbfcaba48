"""What is known about models besides what their servers report."""
