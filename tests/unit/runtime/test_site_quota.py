"""Uploads of a whole site are counted by their owners, reported by doctor, and half-written ones do not stay."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterscape.cli.checks import check_everything
from clusterscape.errors import TooLargeError
from clusterscape.model.access import Role, Viewer
from clusterscape.runtime.site import Site, open_site
from clusterscape.settings import Settings, StorageSettings
from clusterscape.settings.limits import LimitsSettings, UploadLimits

SWF = b"; MaxProcs: 8\n1 0 5 100 4 -1 -1 4 200 -1 1 7 3 -1 1 -1 -1 -1\n"
ADA, OPERATOR = Viewer(login="ada", role=Role.RESEARCHER), Viewer(login="op", role=Role.OPERATOR)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    limits = LimitsSettings(uploads=UploadLimits(stored_traces_per_user=2, min_free_bytes=0, stored_traces=3))
    return Settings(storage=StorageSettings(data_dir=tmp_path / "data", min_free_bytes=0), limits=limits)


@pytest.fixture
def site(settings: Settings) -> Iterator[Site]:
    site = open_site(settings)
    yield site
    site.close()


def test_traces_and_job_traces_count_for_their_owner(site: Site) -> None:
    site.traces.create("one", owned_by="ada")
    site.services.job_traces.upload("two.swf", [SWF], by=ADA)
    quota = site.services.context.quota
    assert quota is not None
    quota.forget()
    assert (quota.use().uploads, quota.use().uploads_of["ada"]) == (2, 2)
    with pytest.raises(TooLargeError, match="you have 2 uploads"):
        site.traces.create("three", owned_by="ada")
    with pytest.raises(TooLargeError, match="you have 2 uploads"):
        site.services.job_traces.upload("three.swf", [SWF], by=ADA)
    site.services.job_traces.upload("three.swf", [SWF], by=OPERATOR)
    (own,) = [row.trace for row in site.queries.job_traces.all().traces if row.name == "two"]
    site.services.job_traces.remove(own, by=ADA)
    site.services.job_traces.upload("four.swf", [SWF], by=ADA)


def test_file_is_not_counted_when_it_was_refused(site: Site) -> None:
    for _ in range(5):
        with pytest.raises(Exception, match="cannot be read"):
            site.services.job_traces.upload("x.swf", [b"no trace"], by=ADA)
    site.services.job_traces.upload("x.swf", [SWF], by=ADA)


def test_files_that_a_killed_server_left_are_removed(site: Site, settings: Settings) -> None:
    folder = settings.storage.data_dir / "artifacts" / "traces" / "x"
    folder.mkdir(parents=True)
    left, written = folder / ".writing-left", folder / ".writing-now"
    for path in (left, written):
        path.write_bytes(b"x")
    os.utime(left, (time.time() - 3600,) * 2)
    quota = site.services.context.quota
    assert quota is not None
    quota.use()
    assert not left.exists()
    assert written.exists()


def test_doctor_says_how_much_uploads_take(site: Site, settings: Settings) -> None:
    for number in range(3):
        site.traces.create(f"t{number}")
    (check,) = [result for result in check_everything(settings, None) if result.what == "uploads"]
    assert not check.is_ok
    assert "3 of 3 traces" in check.message
    assert "limits.uploads.stored_traces" in str(check.hint)
