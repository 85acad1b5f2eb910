"""The bootstrap machine's end. It is noted, because nobody is left who could be asked.

A second bootstrap would begin a second etcd beside the masters', so none may be made again: not after the host was
switched off and no master answers, nor by a run that was killed half-way through the retirement.
"""

from __future__ import annotations

from falsework.files import write_lasting_file
from falsework.lab.folder import Lab
from falsework.site.model import Site

_NOTE = "bootstrap-retired"


def is_retired(lab: Lab) -> bool:
    return (lab.root / _NOTE).exists()


def note(lab: Lab) -> None:
    """Before anything is taken away: from here on there is no way back."""
    write_lasting_file(lab.root / _NOTE, b"", 0o600)


def standing(site: Site, lab: Lab) -> Site:
    """The site as its lab has it now: without a bootstrap that is retired."""
    return site.without_bootstrap() if is_retired(lab) else site
