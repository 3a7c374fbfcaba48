"""The runtime of Desktop Agent: a library and a headless command. No Qt anywhere in it."""
