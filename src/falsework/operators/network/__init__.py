"""The network operator: pods get addresses and reach each other on all nodes, and nodes become Ready."""
