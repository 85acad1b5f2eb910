"""The etcd operator: members join as learners, are promoted when they have caught up, and quorum comes first."""
