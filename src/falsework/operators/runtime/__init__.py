"""What all operators need: conditions, one leader at a time, waiting for work, a log."""
