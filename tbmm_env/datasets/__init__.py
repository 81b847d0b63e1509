"""What trainers read: selections of a trajectory store, written in one format a module."""
