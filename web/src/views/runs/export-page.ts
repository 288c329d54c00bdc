// Exports a comparison as CSV, or as one HTML page with the charts and the table.

import { formatCsv } from "../../base/csv.ts";
import { downloadText } from "../../base/download.ts";
import { escapeSvg } from "../../charts/pen.ts";
import { drawSvg } from "../../charts/save-picture.ts";
import type { RunsPage } from "../../state/runs.ts";
import { describeFigure } from "./figure-text.ts";
import type { RunGroup } from "./groups.ts";
import type { RunQuantity } from "./quantities.ts";
import { listColumns } from "./table-drawing.tsx";

export function saveCsv(groups: readonly RunGroup[], quantities: readonly RunQuantity[]): void {
  const columns = listColumns(groups, quantities);
  const rows = groups.flatMap((group) => group.rows);
  const lines = rows.map((row) => columns.map((column) => column.csv(row)));
  downloadText(
    "runs.csv",
    formatCsv(
      columns.map(({ title }) => title),
      lines,
    ),
    "text/csv",
  );
}

export function saveHtml(
  place: HTMLElement,
  page: RunsPage,
  groups: readonly RunGroup[],
  quantities: readonly RunQuantity[],
): void {
  const { backgroundColor, color, fontFamily } = getComputedStyle(document.body);
  const figure = describeFigure(page, groups);
  const title = figure.title ?? "";
  const columns = listColumns(groups, quantities);
  const rows = groups.flatMap((group) => group.rows);
  const cells = (values: readonly unknown[], tag: string) =>
    `<tr>${values.map((value) => `<${tag}>${escapeSvg(String(value ?? "–"))}</${tag}>`).join("")}</tr>`;
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escapeSvg(title)}</title>
<style>body{margin:24px;background:${backgroundColor};color:${color};font:13px ${fontFamily}}table{border-collapse:collapse}
td,th{padding:4px 10px;border-bottom:1px solid #8884;text-align:left;font-variant-numeric:tabular-nums}svg{max-width:100%}</style>
<h1>${escapeSvg(title)}</h1><p>${escapeSvg(location.href)}</p>${page.drawing === "table" ? "" : drawSvg(place, figure)}
<table><thead>${cells(
    columns.map((column) => column.title),
    "th",
  )}</thead><tbody>${rows
    .map((row) =>
      cells(
        columns.map((column) => column.csv(row)),
        "td",
      ),
    )
    .join("")}</tbody></table></html>`;
  downloadText("runs.html", html, "text/html");
}
