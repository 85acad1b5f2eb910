"""The Cluster Version Operator: keeps the cluster as the release says, and says how far it is."""
