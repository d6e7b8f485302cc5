"""Pictures of a site for the README: python -m tests.report.pictures SITE FOLDER

The index as it opens, and the ranking of nodes, as Chromium draws them in light colours."""

import sys
import tempfile
from pathlib import Path

from tests.report.browser import browsing

CHARTS = {"nodes": "how-good-each-node-is"}  # the section of a word


def write_pictures(site: Path, folder: Path) -> list[Path]:
    """The images that were written; a word without a page, or whose chart nothing fills, has none."""
    site = site.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "index.png"]
    # processes of the browser may write into its profile for a moment after it has ended
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, browsing(Path(profile)) as browser:
        browser.open((site / "index.html").as_uri())
        browser.picture(written[0], is_whole=False)
        for word, section in CHARTS.items():
            for page in sorted(site.glob(f"{word}-*.html"), key=lambda path: len(path.name))[:1]:
                browser.open(f"{page.as_uri()}#{section}")
                chart = f"#{section} .chart"
                if browser.evaluate(f"document.querySelector('{chart}') !== null"):
                    browser.until(f"document.querySelector('{chart} svg') !== null")
                    browser.picture(folder / f"{word}.png", of=chart)
                    written.append(folder / f"{word}.png")
    return written


if __name__ == "__main__":
    for path in write_pictures(Path(sys.argv[1]), Path(sys.argv[2])):
        print(path)
