"""Notes and site as a reader opens them: in a browser, from disk and served, with and without scripts, by keyboard."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opwalker.serve.cli import main
from opwalker.serve.site.server import make_server
from tests.e2e.browser import browser, mermaid_script, new_page

PAGEKIT = Path(__file__).resolve().parents[2] / "fixtures" / "libraries" / "pagekit"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert main(["site", "-o", str(folder), "--source", str(PAGEKIT), "--cache", str(cache)]) == 0
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


class Reader:
    """One reader with a page of their own: what the console said, and what was asked of other machines."""

    def __init__(self, chromium: Any, **settings: Any) -> None:
        self.page = new_page(chromium, **settings)
        self.trouble: list[str] = []
        self.page.on("console", lambda said: self.trouble.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", lambda asked: self._asked(asked.url))

    def _asked(self, url: str) -> None:
        if not url.startswith(("file:", "data:", "http://127.0.0.1:")):
            self.trouble.append(f"asked for {url}")


def _first_op(site: Path) -> Path:
    return site / "op" / "_P_cache.scatter_pages.html"


def test_every_page_opens_without_trouble(chromium: Any, site: Path) -> None:
    reader = Reader(chromium)
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for path in pages:
        reader.page.goto(path.as_uri())
        assert reader.page.title().endswith("· opwalker")
    assert reader.trouble == []


def test_every_link_leads_somewhere(site: Path) -> None:
    anchors = {path: set(re.findall(r' id="([^"]+)"', path.read_text())) for path in site.rglob("*.html")}
    for path in anchors:
        for href in re.findall(r'(?:href|src|action)="([^"]+)"', path.read_text()):
            name, _, anchor = href.partition("#")
            if name.startswith("data:"):
                continue
            target = (path.parent / name.replace("%20", " ")).resolve() if name else path
            assert target.is_file(), f"{path.name} links to {href}"
            assert not anchor or anchor in anchors[target], f"{path.name} links to {href}"


def test_search_narrows_and_opens_by_keyboard(chromium: Any, site: Path) -> None:
    reader = Reader(chromium)
    page = reader.page
    page.goto((site / "index.html").as_uri())
    everything = page.locator("li[data-name]:visible").count()
    page.keyboard.press("/")
    page.keyboard.type("scatter pa")
    shown = page.locator("li[data-name]:visible")
    assert 0 < shown.count() < everything
    assert all("scatter" in text for text in shown.all_inner_texts())
    assert page.locator("output").inner_text() == f"{shown.count()} found"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/op/*scatter*")
    assert "scatter" in page.locator("h1").inner_text()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("topk")
    page.keyboard.press("Enter")
    page.wait_for_url("**/index.html?q=topk")
    assert page.locator("li[data-name]:visible").count() >= 1
    page.locator("#q").press("Escape")
    assert page.locator("li[data-name]:visible").count() == everything
    assert reader.trouble == []


def test_the_index_reads_without_scripts(chromium: Any, site: Path) -> None:
    page = Reader(chromium, java_script_enabled=False).page
    page.goto((site / "index.html").as_uri())
    assert page.locator("li[data-name]:visible").count() > 10
    page.get_by_role("link", name="_P_cache::scatter_pages", exact=True).click()
    page.wait_for_url("**/op/*scatter_pages*")
    assert page.locator("section").count() > 5


@pytest.mark.parametrize("scripts", [True, False])
def test_a_statement_shows_its_code_beside_it(chromium: Any, site: Path, scripts: bool) -> None:
    page = Reader(chromium, java_script_enabled=scripts, viewport={"width": 1500, "height": 900}).page
    page.goto(_first_op(site).as_uri())
    link = page.locator("#launch .at a").first
    line = re.search(r":(\d+)", link.inner_text())
    assert line is not None
    link.click()
    code = page.frame(name="code")
    assert code is not None
    code.wait_for_url(f"**#L{line[1]}")
    assert code.locator(f"#L{line[1]}").is_visible()
    assert page.url == _first_op(site).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(chromium: Any, site: Path, scheme: str) -> None:
    page = Reader(chromium, color_scheme=scheme).page
    page.goto(_first_op(site).as_uri())
    colours = page.evaluate(
        """() => ["body", "code", ".at a", "td a", ".summary"].map(function (what) {
          var style = getComputedStyle(document.querySelector(what));
          return [what, style.color, getComputedStyle(document.body).backgroundColor];
        })"""
    )
    for what, ink, paper in colours:
        assert _contrast(ink, paper) >= 4.5, (what, ink, paper)
    assert (_light(_rgb(colours[0][2])) > 0.5) == (scheme == "light")


def _rgb(text: str) -> tuple[float, float, float]:
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", text)[:3])
    return red, green, blue


def _light(colour: tuple[float, float, float]) -> float:
    """Relative luminance, as the web's accessibility rules define it."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_light(_rgb(one)), _light(_rgb(other))), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_a_phone_shows_the_page_without_scrolling_sideways(chromium: Any, site: Path) -> None:
    page = Reader(chromium, viewport={"width": 375, "height": 700}).page
    for path in (site / "index.html", _first_op(site)):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_links_to_many_places_wrap(chromium: Any, site: Path) -> None:
    page = Reader(chromium, viewport={"width": 1280, "height": 700}).page
    page.goto(_first_op(site).as_uri())
    beyond = page.evaluate("""() => {
        const at = [...document.querySelectorAll('.at')].find(one => one.querySelector('a'));
        at.innerHTML = (at.innerHTML + ', ').repeat(12);
        return at.getBoundingClientRect().right - document.querySelector('main').getBoundingClientRect().right;
    }""")
    assert beyond <= 0


def test_the_keyboard_reaches_the_walk_first(chromium: Any, site: Path) -> None:
    page = Reader(chromium).page
    page.goto(_first_op(site).as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the walk"
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.id === 'main'")


def test_served_pages_are_the_same(chromium: Any, site: Path) -> None:
    reader = Reader(chromium)
    with make_server(site) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        reader.page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        assert reader.page.locator("li[data-name]").count() > 10
        server.shutdown()
        thread.join()
    assert reader.trouble == []


def test_nothing_of_a_source_becomes_markup(chromium: Any, tmp_path: Path, cache: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.cu").write_text(
        "// <script>window.broken = 1</script>\n"
        "#include <torch/library.h>\n"
        "template <typename T> __global__ void k(T* x) { x[0] = 1; }\n"
        "void f(torch::Tensor& x /* [a<b>, \"c\"] */) {\n"
        '  TORCH_CHECK(x.dim() == 1, "<img src=x onerror=window.broken=1>", "&lt;");\n'
        "  k<float><<<1, 1>>>(x.data_ptr<float>());\n"
        "}\n"
        'TORCH_LIBRARY(kit, m) { m.def("f(Tensor! x) -> ()"); }\n'
        "TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl(\"f\", &f); }\n"
    )  # fmt: skip
    folder = tmp_path / "site"
    assert main(["site", "-o", str(folder), "--source", str(source), "--cache", str(cache)]) == 0
    reader = Reader(chromium)
    for path in folder.rglob("*.html"):
        reader.page.goto(path.as_uri())
        assert reader.page.evaluate("window.broken") is None
        assert reader.page.locator("img").count() == 0
    reader.page.goto((folder / "op" / "kit.f.html").as_uri())
    assert "<img src=x onerror=window.broken=1>" in reader.page.locator("main").inner_text()
    assert reader.trouble == []


@pytest.mark.network
def test_diagrams_are_read_by_mermaid_itself(chromium: Any, tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "notes"
    assert main(["notes", "--all", "-o", str(folder), "--source", str(PAGEKIT), "--cache", str(cache)]) == 0
    script = mermaid_script(tmp_path)
    page = new_page(chromium)
    page.set_content("<html></html>")
    page.add_script_tag(content=script)
    fence = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
    diagrams = [found for path in sorted(folder.glob("*.md")) for found in fence.findall(path.read_text())]
    assert len(diagrams) > 5
    for diagram in diagrams:
        assert page.evaluate("text => mermaid.parse(text)", diagram)
    with pytest.raises(Exception, match="Parse error"):
        page.evaluate("text => mermaid.parse(text)", diagrams[0].replace("-->", "~~~~>"))
