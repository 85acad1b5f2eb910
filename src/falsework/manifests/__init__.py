"""What every cluster of this release has, whatever its site: definitions, namespaces, rights, first objects.

Data in Python, by the standard library alone: the bootstrap machine writes it as files for a person to read, and the
Cluster Version Operator keeps it as it is here.
"""
