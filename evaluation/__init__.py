"""A small language model works through workflows on a real server: whether it finishes, and which errors it makes."""
