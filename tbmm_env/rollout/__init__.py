"""Policies and the loop that runs one episode."""
