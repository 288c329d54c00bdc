"""Selection in the picture, its totals, the map, and all exports."""

import io
import re
import struct
import urllib.request
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Locator, Page, expect
from servers.demo import get_json, wait_until
from servers.picture import open_held_picture, open_picture, point_until, read_address, wait_for_rest

OUTPUT = Path(__file__).parent / "output"
THEMES = (("dark", 1440, 900), ("light", 1024, 768))

pytestmark = pytest.mark.browser


def corner_of(picture: Locator) -> tuple[float, float]:
    box = picture.bounding_box()
    assert box is not None
    return box["x"], box["y"]


def details_of(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Details")


def fact_of(page: Page, name: str) -> Locator:
    row = details_of(page).locator("dl > div", has=page.locator("dt", has_text=re.compile(f"^{name}$")))
    return row.locator("dd")


def read_fact(page: Page, name: str) -> str:
    return fact_of(page, name).inner_text().replace("\u00a0", " ")


def read_units(url: str, at: int | None = None) -> pl.DataFrame:
    moment = "" if at is None else f"?at={at}"
    with urllib.request.urlopen(f"{url}/api/v1/units.parquet{moment}", timeout=30) as response:
        return pl.read_parquet(io.BytesIO(response.read()))


@contextmanager
def held(page: Page, key: str) -> Iterator[None]:
    page.keyboard.down(key)
    yield
    page.keyboard.up(key)


def drag(page: Page, *points: tuple[float, float]) -> None:
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=6)
    page.mouse.up()


def select_box(page: Page, picture: Locator) -> int:
    """Draw a box over the upper left of the picture; how many units it holds."""
    x, y = corner_of(picture)
    with held(page, "Shift"):
        drag(page, (x + 8, y + 30), (x + 330, y + 280))
    page.wait_for_url(re.compile(r"select=units:"))
    return int(details_of(page).get_by_role("heading", level=1).inner_text().split()[0])


def point_at_a_group(page: Page, picture: Locator) -> tuple[float, float]:
    """Move the pointer over the picture until the name of an outer group answers."""
    x, y = corner_of(picture)
    group = page.locator("small", has_text=re.compile("^project$"))
    tip = page.get_by_role("tooltip").filter(has=group, has_text="utilization")  # a project's, not the free GPUs'
    points = product(range(14, 60, 4), range(30, 500, 9))
    return point_until(page, ((x + right, y + down) for down, right in points), tip)


def test_box_selects_the_units_in_it_when_drawn_with_shift(page: Page) -> None:
    picture = open_held_picture(page)
    count = select_box(page, picture)
    assert 1 < count < 256
    expect(fact_of(page, "GPUs")).to_have_text(re.compile(f"^{count} on "))
    page.reload()
    expect(details_of(page).get_by_role("heading", level=1)).to_have_text(re.compile(f"^{count}\\s"))


def test_selection_grows_when_a_loop_is_added(page: Page) -> None:
    picture = open_held_picture(page)
    before = select_box(page, picture)
    x, y = corner_of(picture)
    picture.focus()
    page.keyboard.press("l")
    expect(page.get_by_role("radio", name="Lasso")).to_be_checked()
    with held(page, "Control"):
        drag(page, (x + 300, y + 260), (x + 620, y + 280), (x + 600, y + 420), (x + 320, y + 430))
    heading = details_of(page).get_by_role("heading", level=1)
    expect(heading).not_to_have_text(re.compile(f"^{before}\\s"))
    assert int(heading.inner_text().split()[0]) > before
    page.keyboard.press("Escape")
    expect(page.get_by_role("radio", name="Pan")).to_be_checked()


def test_group_says_what_the_api_says_when_it_is_selected(page: Page, demo_url: str) -> None:
    at = get_json(f"{demo_url}/api/v1/cluster")["at"] // 60_000 * 60_000 - 3_600_000
    units = read_units(demo_url, at).filter(pl.col("node").is_not_null() & pl.col("project").is_not_null())
    project = units["project"].cast(pl.String).value_counts(sort=True)["project"][0]
    mine = units.filter(pl.col("project").cast(pl.String) == project)
    moment = pl.Series([at]).cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%dT%H:%MZ")[0]
    page.goto(f"/?select=group:gpus/project={project}&at={moment}")
    expect(details_of(page).get_by_role("heading", level=1)).to_have_text(project)
    expect(fact_of(page, "GPUs")).to_have_text(f"{len(mine):,} on {mine['node'].n_unique():,} nodes")
    expect(fact_of(page, "users")).to_have_text(f"{mine['user'].n_unique():,}")
    util = round(100 * float(mine["gpu_util_ratio"].drop_nulls().to_numpy().mean()))
    expect(fact_of(page, "utilization")).to_have_text(re.compile(rf"^{util}\s%, cluster "))
    kilowatts = f"{float(mine['power_watts'].sum()) / 1000:.1f}"
    expect(fact_of(page, "power")).to_have_text(re.compile(rf"^{re.escape(kilowatts)}\skW of "))


def test_wasted_hours_are_those_of_the_api_when_a_group_is_live(page: Page, demo_url: str) -> None:
    def hours() -> tuple[str, str]:
        units = read_units(demo_url).filter(pl.col("node").is_not_null())
        project = units["project"].cast(pl.String).drop_nulls().value_counts(sort=True)["project"][0]
        with urllib.request.urlopen(f"{demo_url}/api/v1/waste/units", timeout=30) as response:
            waste = pl.read_ipc_stream(io.BytesIO(response.read())).with_columns(pl.col("workload").cast(pl.String))
        mine = units.filter(pl.col("project").cast(pl.String) == project).with_columns(
            pl.col("workload").cast(pl.String)
        )
        held_hours = mine.join(waste, on=["unit", "workload"])["held_gpu_hours"].sum()
        return project, f"{held_hours:,.0f}"

    project, _ = hours()
    page.goto(f"/?select=group:gpus/project={project}")
    expect(details_of(page).get_by_text("wasted in 24 h")).to_be_visible(timeout=90_000)
    # The cluster changes meanwhile: page and API agree once both have the same state.
    wait_until(lambda: f"of {hours()[1]} GPU-hours" in read_fact(page, "wasted in 24 h"), limit_s=90)


def test_group_is_zoomed_to_and_left_again_when_double_clicked(page: Page) -> None:
    picture = open_held_picture(page)
    where = point_at_a_group(page, picture)
    expect(page.get_by_role("tooltip")).to_contain_text("utilization")
    page.mouse.dblclick(*where)
    page.wait_for_url(re.compile(r"select=group:gpus/project="))
    minimap = page.get_by_role("img", name=re.compile("^Minimap"))
    expect(minimap).to_be_visible()
    picture.focus()
    page.keyboard.press("0")
    wait_for_rest(page)
    page.keyboard.press("Escape")
    expect(details_of(page)).to_be_hidden()
    page.keyboard.press("0")
    expect(minimap).to_be_hidden()


def test_picture_moves_when_the_window_of_the_map_is_dragged(page: Page) -> None:
    picture = open_picture(page)
    picture.focus()
    for _ in range(4):
        page.keyboard.press("+")
    minimap = page.get_by_role("img", name=re.compile("^Minimap"))
    expect(minimap).to_be_visible()
    box = minimap.bounding_box()
    assert box is not None
    window = minimap.locator("div")

    def place() -> str:
        wait_for_rest(page)
        return str(window.evaluate("element => element.style.transform"))

    drag(page, (box["x"] + 20, box["y"] + 20), (box["x"] + 30, box["y"] + 25))
    before = place()
    drag(page, (box["x"] + 30, box["y"] + 25), (box["x"] + box["width"] - 20, box["y"] + box["height"] - 20))
    assert place() != before
    assert "select=" not in read_address(page)
    page.keyboard.press("0")
    expect(minimap).to_be_hidden()


def test_group_of_a_unit_is_selected_when_only_keys_are_used(page: Page) -> None:
    picture = open_held_picture(page)
    picture.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tooltip")).to_be_visible()
    first = page.get_by_role("tooltip").inner_text()
    page.keyboard.press("]")
    expect(page.get_by_role("tooltip")).not_to_have_text(first)
    page.keyboard.press("g")
    page.wait_for_url(re.compile(r"select=(workload|group):"))
    page.keyboard.press("g")
    page.wait_for_url(re.compile(r"select=group:gpus/project=[^/]+/user="))
    page.keyboard.press("g")
    page.wait_for_url(re.compile(r"select=group:gpus/project=[^/&]+$"))


def test_picture_is_a_valid_file_when_saved(page: Page, tmp_path: Path) -> None:
    picture = open_picture(page)
    units = int(picture.get_attribute("data-unit-count") or 0)
    box = picture.bounding_box()
    assert box is not None
    for kind in ("PNG", "SVG"):
        page.get_by_role("button", name="Export the picture").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=kind).click()
        assert download.value.suggested_filename.startswith("clusterscape-who-uses-what-")
        download.value.save_as(tmp_path / kind)
    png = (tmp_path / "PNG").read_bytes()
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    assert abs(width - 2 * box["width"]) <= 2
    assert height > 2 * box["height"]
    root = ElementTree.fromstring((tmp_path / "SVG").read_text(encoding="utf-8"))
    paths = [path.get("d") or "" for path in root.iter("{http://www.w3.org/2000/svg}path")]
    assert sum(path.count("M") for path in paths) >= units
    texts = [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(text.startswith("Who uses what by ") for text in texts)


def test_same_units_are_in_every_file_when_a_selection_is_saved(page: Page, tmp_path: Path) -> None:
    picture = open_held_picture(page)
    count = select_box(page, picture)
    tables: dict[str, pl.DataFrame] = {}
    for kind in ("CSV", "Parquet"):
        details_of(page).get_by_role("button", name="Export the selected units").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=kind).click()
        download.value.save_as(tmp_path / kind)
    tables = {"CSV": pl.read_csv(tmp_path / "CSV"), "Parquet": pl.read_parquet(tmp_path / "Parquet")}
    assert len(tables["CSV"]) == count
    assert tables["CSV"]["unit"].to_list() == tables["Parquet"]["unit"].to_list()
    assert {"workload", "user", "gpu_util_ratio", "power_watts"} <= set(tables["Parquet"].columns)


def test_table_has_the_selected_rows_when_asked_for(page: Page) -> None:
    picture = open_held_picture(page)
    count = select_box(page, picture)
    details_of(page).get_by_role("button", name="Filter to these").click()
    expect(page.get_by_role("status").filter(has_text=re.compile(f"^{count} of "))).to_be_visible()
    details_of(page).get_by_role("button", name="Show as table").click()
    page.wait_for_url(re.compile(r"table=units"))
    expect(page.get_by_role("status").filter(has_text=re.compile(f"^{count} of "))).to_be_visible()
    page.get_by_role("button", name="Show all units again").click()
    expect(page.get_by_role("status").filter(has_text=re.compile(r"^\d+ rows"))).to_be_visible()


@pytest.mark.parametrize(("theme", "width", "height"), THEMES)
def test_selection_is_pictured_when_themes_and_sizes_differ(page: Page, theme: str, width: int, height: int) -> None:
    page.emulate_media(color_scheme="light" if theme == "light" else "dark")
    page.set_viewport_size({"width": width, "height": height})
    picture = open_picture(page)
    select_box(page, picture)
    x, y = corner_of(picture)
    page.mouse.move(x + 200, y + 200)
    page.mouse.wheel(0, -500)
    wait_for_rest(page)
    OUTPUT.mkdir(exist_ok=True)
    page.screenshot(path=OUTPUT / f"selection-{theme}-{width}.png")
    expect(page.get_by_role("img", name=re.compile("^Minimap"))).to_be_visible()
