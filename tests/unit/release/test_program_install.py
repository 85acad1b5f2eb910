from pathlib import Path

from falsework.files import sha256_of
from falsework.release.recipes import Part


def test_a_program_is_installed_ready_to_run_and_mended_when_it_is_not(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    blob.write_text("#!/bin/sh\n")
    part = Part("tool", "1", "here", sha256_of(blob), blob)
    place = part.install(tmp_path / "bin")
    assert place == tmp_path / "bin" / "tool"
    assert place.stat().st_mode & 0o777 == 0o755
    installed = place.stat().st_ino
    assert part.install(tmp_path / "bin").stat().st_ino == installed, "what is there stays"
    for damage in (lambda: place.write_text("cut"), lambda: place.chmod(0o644), place.unlink):
        damage()
        part.install(tmp_path / "bin")
        assert place.read_text() == "#!/bin/sh\n"
        assert place.stat().st_mode & 0o777 == 0o755
