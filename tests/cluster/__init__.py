"""Tests on a whole cluster."""
