"""Policies, the loop that runs one episode, and rollouts of many: in this process, or on a pool of Ray actors."""
