"""Synthetic click logs with a known truth: queries, lists, users, arrival times and faults."""
