"""Helpers for the program of a trial that reports to a tracker itself. Each imports its peer when it is called."""
