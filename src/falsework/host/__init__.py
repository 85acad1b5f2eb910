"""The host Falsework runs on: what it has, and how to get what it lacks."""
