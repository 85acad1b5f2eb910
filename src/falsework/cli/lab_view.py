"""What the commands that look into a lab share."""

from __future__ import annotations

from pathlib import Path

from falsework.cli.site_folder import site_in
from falsework.lab.folder import Lab
from falsework.machines.view import View


def view_of(folder: Path) -> View:
    """The view into the lab of the folder's site."""
    return View(site_in(folder), Lab.of(folder))
