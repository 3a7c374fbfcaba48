"""Models that lie as files on this computer: find them, and run one with llama.cpp's own server."""
