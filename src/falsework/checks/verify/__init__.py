"""What proves that a cluster is what its guides say: every check they name, and those that people expect beyond."""
