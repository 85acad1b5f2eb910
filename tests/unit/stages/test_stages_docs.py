"""docs/stages.md shows the stages there are."""

from __future__ import annotations

from pathlib import Path

from falsework.stages.catalogue import STAGES

PAGE = Path(__file__).parents[3] / "docs" / "stages.md"


def test_the_table_of_stages_is_the_list_of_stages() -> None:
    table = "| stage | what it does | why | needs |\n|---|---|---|---|\n" + "".join(
        f"| `{stage.name}` | {stage.title} | {stage.why} | {', '.join(f'`{name}`' for name in stage.needs) or '-'} |\n"
        for stage in STAGES
    )
    text = PAGE.read_text()
    shown = text[text.index("| stage | what") : text.index("<!-- end of stages")]
    assert shown == table, f"paste this into {PAGE.name}:\n{table}"
