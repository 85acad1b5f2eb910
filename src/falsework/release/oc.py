"""The command that guides for OpenShift use, for machines and people that do not have the real one."""

from __future__ import annotations

NAME = "oc"
SCRIPT = r"""#!/bin/sh
# What guides for OpenShift call oc, as far as kubectl can do it. The real one, if it is there, goes before.
case "$1 $2" in
"adm certificate" | "adm cordon" | "adm uncordon" | "adm drain" | "adm taint" | "adm top") shift ;;
"whoami --show-server") exec kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}{"\n"}' ;;
"whoami "*) exec kubectl auth whoami -o jsonpath='{.status.userInfo.username}{"\n"}' ;;
esac
exec kubectl "$@"
"""
