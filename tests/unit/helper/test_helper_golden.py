"""What is rendered, as a person reads it, against what it was when someone last looked at it.

After a change that is meant, run the tests with FALSEWORK_UPDATE_GOLDEN=1 in the environment, and read the
difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helper_samples import TODAY, alchemy, rich

from falsework.helper.render import FORMATS, as_one_text, render
from falsework.site.load import default_site

GOLDEN = Path(__file__).parent / "golden"
SITES = {"default": default_site(), "alchemy": alchemy(), "rich": rich()}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("site", SITES)
def test_rendered_as_it_was(site: str, name: str) -> None:
    path = GOLDEN / f"{site}-{name}.txt"
    text = as_one_text(render(name, SITES[site], TODAY))
    if os.environ.get("FALSEWORK_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
