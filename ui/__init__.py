"""The window of Desktop Agent. Importing this package imports no Qt."""
