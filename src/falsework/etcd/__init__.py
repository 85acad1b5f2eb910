"""etcd as both sides know it: its settings, its members, and a client of its JSON gateway."""
