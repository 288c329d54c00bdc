"""What every HTML report shares: one file that needs nothing else, the look in light and dark, and the colors of series."""

from html import escape
from pathlib import Path

from clusterscape.errors import ClusterScapeError

COLORS = 8
"""So many colors the page has; later series share the last."""

# The categorical colors are Okabe and Ito's, which people with any color vision tell apart; dark ones are lighter.
STYLE = """
:root { color-scheme: light dark; --bg: #fff; --text: #1b1f24; --muted: #59636e; --line: #d9dee3; --panel: #f6f8fa;
  --none: #8b949e; --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #b58900; --c5: #56b4e9;
  --c6: #7a5195; --c7: #6b6b6b; --warning: #b35900; --critical: #c4281c; --info: #0b6bcb; }
@media (prefers-color-scheme: dark) { :root { --bg: #14171b; --text: #e6e9ec; --muted: #9aa4ae; --line: #2e343b;
  --panel: #1c2026; --none: #6e7781; --c0: #4aa3df; --c1: #ff8c42; --c2: #3ecf9e; --c3: #e8a0c8; --c4: #e3c14a;
  --c5: #8fd0f5; --c6: #b493d6; --c7: #a8a8a8; --warning: #f0a355; --critical: #ff7b6e; --info: #6cb6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 32px 24px 64px; max-width: 1008px; background: var(--bg); color: var(--text);
  font: 14px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 22px; } h2 { margin: 36px 0 10px; font-size: 15px; }
p { margin: 4px 0; } .muted { color: var(--muted); } .numbers { font-variant-numeric: tabular-nums; }
.finding { margin: 8px 0; padding: 10px 14px; border-left: 3px solid var(--info); border-radius: 4px; background: var(--panel); }
.finding.warning { border-color: var(--warning); } .finding.critical { border-color: var(--critical); }
.finding b { font-weight: 600; } ul { margin: 4px 0; padding-left: 20px; }
.key { display: inline-block; width: 10px; height: 10px; margin-right: 6px; border-radius: 2px; background: currentColor; }
svg { display: block; width: 100%; height: auto; margin: 8px 0; }
svg text { fill: var(--muted); font: 10px system-ui, sans-serif; }
svg .end { text-anchor: end; } svg .axis { stroke: var(--line); fill: none; } svg .line { fill: none; stroke: currentColor;
  stroke-width: 1.5; } svg .fill { fill: currentColor; }
.none { color: var(--none); } .c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); }
.c3 { color: var(--c3); } .c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.plain { color: var(--text); }
@media print { body { padding: 0; } .finding { break-inside: avoid; } }
"""


def color_class(label: int | None) -> str:
    """The class that gives a series its color; what belongs to none is gray."""
    return "none" if label is None else f"c{min(label, COLORS - 1)}"


def write_html(path: Path, title: str, body: str, *, style: str = "") -> None:
    """Write a report; ``style`` comes after the shared one. Raises ClusterScapeError where the file cannot be written."""
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head><body>{body}</body></html>\n"
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ClusterScapeError(f"cannot write {path}: {error.strerror}", hint="Name another file.") from None


def draw_svg(width: float, height: float, body: str, title: str) -> str:
    """A picture that scales with the page and has a name for those who do not see it."""
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">{body}</svg>'
    )
