"""The rankers compiled: each module equals its namesake in ``bubblerank.rankers`` to the bit."""
