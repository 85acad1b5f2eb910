"""The storage operator: a claim gets a folder on the node where its first pod goes."""
