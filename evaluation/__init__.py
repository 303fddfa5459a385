"""Measures whether a small language model completes workflows on a real server, and which errors it makes."""
