import tarfile
from pathlib import Path

from falsework.release.tarball import entries_of, file_entry, folder_entry, link_entry, write_tar

EPOCH = 1_000_000


def test_the_archive_does_not_depend_on_the_order_or_the_clock(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"from a file")
    entries = [
        folder_entry("b", EPOCH),
        file_entry("b/two", b"2", EPOCH),
        file_entry("a", tmp_path / "source", EPOCH, 0o755),
        link_entry("b/one", "two", EPOCH),
    ]
    write_tar(tmp_path / "1.tar", entries)
    write_tar(tmp_path / "2.tar", reversed(entries))
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes()
    with tarfile.open(tmp_path / "1.tar") as archive:
        assert archive.getnames() == ["a", "b", "b/one", "b/two"]
        assert {member.mtime for member in archive} == {EPOCH}


def test_a_folder_comes_before_what_is_in_it_whatever_is_beside_it(tmp_path: Path) -> None:
    write_tar(tmp_path / "t.tar", [file_entry("a-b", b"", 0), file_entry("a/x", b"", 0), folder_entry("a", 0)])
    with tarfile.open(tmp_path / "t.tar") as archive:
        assert archive.getnames() == ["a", "a/x", "a-b"]


def test_of_two_entries_with_one_name_the_later_counts(tmp_path: Path) -> None:
    write_tar(tmp_path / "t.tar", [file_entry("x", b"first", 0), file_entry("x", b"second", 0)])
    with tarfile.open(tmp_path / "t.tar") as archive:
        content = archive.extractfile("x")
        assert content is not None
        assert content.read() == b"second"
        assert len(archive.getnames()) == 1


def test_rewriting_an_archive_drops_names_and_young_times_and_keeps_the_rest(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "raw.tar", "w") as raw:
        info = tarfile.TarInfo("./etc/shadow")
        info.mtime, info.uid, info.gid, info.uname, info.mode = EPOCH + 5.5, 0, 42, "somebody", 0o640
        info.pax_headers = {"SCHILY.xattr.security.capability": "x", "atime": "1.5"}
        raw.addfile(info)
        old = tarfile.TarInfo("./old")
        old.mtime = 7
        raw.addfile(old)
    with tarfile.open(tmp_path / "raw.tar") as raw:
        write_tar(tmp_path / "new.tar", entries_of(raw, EPOCH))
    with tarfile.open(tmp_path / "new.tar") as archive:
        shadow, old = archive.getmember("etc/shadow"), archive.getmember("old")
    assert (shadow.mtime, shadow.gid, shadow.uname, shadow.mode) == (EPOCH, 42, "", 0o640)
    assert "SCHILY.xattr.security.capability" in shadow.pax_headers
    assert "atime" not in shadow.pax_headers
    assert old.mtime == 7
