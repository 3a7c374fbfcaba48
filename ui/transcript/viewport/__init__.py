"""The viewport over the rows: what is visible, scrolling, selection and focus."""
