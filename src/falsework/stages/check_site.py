"""Checks of what the site asks for against what can be made."""

from __future__ import annotations

from collections.abc import Iterator

from falsework.site.model import Distribution, Provider
from falsework.site.records import everyone
from falsework.stages.context import Context
from falsework.stages.findings import Finding, ok, problem


def distribution(context: Context) -> Iterator[Finding]:
    if context.site.distribution is Distribution.OPENSHIFT:
        yield problem(
            "the site's distribution is openshift, whose clusters Falsework cannot raise yet",
            "write `distribution: kubernetes` in site.yaml; `falsework render` serves OpenShift sites today",
        )
    else:
        yield ok(f"distribution: {context.site.distribution}")


def providers(context: Context) -> Iterator[Finding]:
    for provider in sorted({machine.provider for machine in everyone(context.site)}):
        names = [machine.name for machine in everyone(context.site) if machine.provider is provider]
        if provider is Provider.NSPAWN:
            yield ok(f"machines of provider {provider}: {', '.join(names)}")
        else:
            yield problem(
                f"{', '.join(names)}: machines of provider {provider} cannot be made yet",
                "write `provider: nspawn` in site.yaml",
            )
