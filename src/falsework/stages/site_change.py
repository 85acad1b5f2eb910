"""A change of the site's files: both or none, whenever a kill comes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from falsework.files import write_file, write_lasting_file
from falsework.lab.folder import Lab
from falsework.site import install_config, site_config
from falsework.site.edit import SiteTexts, with_addresses, with_workers, without_machine
from falsework.site.load import examine_text
from falsework.site.model import Site
from falsework.site.problems import SiteError


def _pending(lab: Lab) -> Path:
    return lab.root / "site-change.json"


def add_workers(lab: Lab, site: Site, names: list[str]) -> None:
    """With addresses of their own, so that they keep them. SiteError, and nothing changed, if the site would break a
    rule."""
    texts = with_workers(_texts(lab), site, names)
    grown = _checked(texts)
    _change(lab, SiteTexts(texts.install, with_addresses(texts.site or "", grown, names)))


def remove_machine(lab: Lab, site: Site, name: str) -> None:
    texts = without_machine(_texts(lab), site, name)
    _checked(texts)
    _change(lab, texts)


def finish(lab: Lab) -> None:
    """What a kill has left half done."""
    try:
        texts = SiteTexts(**json.loads(_pending(lab).read_bytes()))
    except FileNotFoundError:
        return
    _write(lab, texts)


def _change(lab: Lab, texts: SiteTexts) -> None:
    write_lasting_file(_pending(lab), json.dumps(asdict(texts)).encode(), 0o600)
    _write(lab, texts)


def _write(lab: Lab, texts: SiteTexts) -> None:
    for name, text in ((install_config.FILE, texts.install), (site_config.FILE, texts.site)):
        if text is not None:
            _replace(lab.site_folder / name, text)
    _pending(lab).unlink()


def _replace(path: Path, text: str) -> None:
    """As the person's own file: whoever may write it may go on doing so."""
    known = path.stat() if path.exists() else path.parent.stat()
    mode = known.st_mode & 0o777 if path.exists() else 0o644
    write_file(path, text.encode(), mode)
    os.chown(path, known.st_uid, known.st_gid)


def _texts(lab: Lab) -> SiteTexts:
    install, site = (lab.site_folder / name for name in (install_config.FILE, site_config.FILE))
    return SiteTexts(*(path.read_text() if path.exists() else None for path in (install, site)))


def _checked(texts: SiteTexts) -> Site:
    examined = examine_text(*(None if text is None else text.encode() for text in (texts.install, texts.site)))
    if examined.site is None:
        raise SiteError(examined.problems)
    return examined.site
