import hashlib
import json
import tarfile
from pathlib import Path

from falsework.release import oci
from falsework.release.cache import Cache
from falsework.release.tarball import file_entry


def make_image(cache: Cache) -> oci.Image:
    layer = oci.add_layer(cache, [file_entry("usr/bin/tool", b"#!", 0, 0o755)])
    return oci.add_image(cache, "tool", "1.0", [layer], entrypoint=("/usr/bin/tool",), env={"A": "b"})


def test_the_same_content_gives_the_same_digest_anywhere(tmp_path: Path) -> None:
    first = make_image(Cache(tmp_path / "1", print))
    second = make_image(Cache(tmp_path / "2", print))
    assert first == second


def test_manifest_config_and_layer_refer_to_each_other(tmp_path: Path) -> None:
    cache = Cache(tmp_path, print)
    image = make_image(cache)
    manifest = json.loads(cache.path_of(image.digest).read_bytes())
    config = json.loads(cache.path_of(manifest["config"]["digest"].removeprefix("sha256:")).read_bytes())
    assert manifest["mediaType"] == oci.MANIFEST
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    assert config["config"]["Entrypoint"] == ["/usr/bin/tool"]
    assert "A=b" in config["config"]["Env"]
    assert image.size == sum(cache.path_of(blob).stat().st_size for blob in oci.blobs_of(cache, image))
    assert image.pinned == f"registry.falsework.internal/release/tool@sha256:{image.digest}"


def test_an_archive_holds_every_blob_under_its_digest(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", print)
    image = make_image(cache)
    oci.write_archive(cache, [image], tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as archive:
        listing = archive.extractfile("index.json")
        assert listing is not None
        index = json.load(listing)
        assert index["manifests"][0]["digest"] == f"sha256:{image.digest}"
        blobs = [member for member in archive if member.name.startswith("blobs/")]
        assert len(blobs) == 3
        for member in blobs:
            content = archive.extractfile(member)
            assert content is not None
            assert hashlib.sha256(content.read()).hexdigest() == Path(member.name).name
