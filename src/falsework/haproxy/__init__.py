"""HAProxy as all who run one know it: how its configuration is written, and how a running one is asked."""
