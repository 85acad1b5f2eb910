"""The one declarative input: install-config.yaml and site.yaml, read, completed with defaults and checked."""
