// Exports the picture: the visible part, with title, time and legend.

import { downloadBlob, downloadText } from "../../../base/download.ts";
import { formatPlural } from "../../../base/format.ts";
import { formatExact } from "../../../base/time.ts";
import { createMeasure, type Pen, SvgPen, writeSvgDocument } from "../../../charts/pen.ts";
import type { Projection } from "../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import type { Size } from "./camera.ts";
import { paintGroups } from "./group-painter.ts";
import { LEGEND_HEIGHT, paintLegend, write } from "./legend-painter.ts";
import { headWidth } from "./rules/rule-bars.ts";
import { computeRuleMarks } from "./rules/rule-marks.ts";
import { paintRuleBars, paintUnitSlots } from "./rules/rule-painter.ts";
import { paintSquares } from "./square-painter.ts";
import { toCss } from "./tokens.ts";
import type { PictureModel } from "./use-picture.ts";

/** SVG documents with more units are several megabytes large and slow to open. */
export const MANY_UNITS = 20_000;

const DENSITY = 2;
const HEAD_HEIGHT = 34;
const MARGIN = 14;

export interface PictureSubject {
  readonly layout: UnitLayout;
  readonly camera: Projection;
  readonly viewport: Size;
  readonly model: PictureModel;
  readonly atMs: number;
}

export function savePng(subject: PictureSubject): void {
  const { width, height } = pageOf(subject.viewport);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * DENSITY);
  canvas.height = Math.round(height * DENSITY);
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.fillStyle = toCss(subject.model.tokens.bg);
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(DENSITY, DENSITY);
  paintPage(context, subject);
  canvas.toBlob((blob) => {
    if (blob) downloadBlob(`${nameOf(subject)}.png`, blob);
  }, "image/png");
}

export function saveSvg(subject: PictureSubject): void {
  downloadText(`${nameOf(subject)}.svg`, writeSvg(subject), "image/svg+xml");
}

export function writeSvg(subject: PictureSubject): string {
  const pen = new SvgPen(createMeasure());
  paintPage(pen, subject);
  const { tokens } = subject.model;
  return writeSvgDocument(
    {
      ...pageOf(subject.viewport),
      title: titleOf(subject),
      background: toCss(tokens.bg),
      color: toCss(tokens.text),
    },
    [pen.finish()],
  );
}

function pageOf({ width, height }: Size): Size {
  return { width, height: height + HEAD_HEIGHT + LEGEND_HEIGHT };
}

function titleOf({ model }: PictureSubject): string {
  return `${model.arrangement.title} by ${model.color.title}`;
}

function nameOf({ model, atMs }: PictureSubject): string {
  const words = model.arrangement.title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return `clusterscape-${words}-${new Date(atMs).toISOString().slice(0, 16).replace(/[:T]/g, "-")}`;
}

function paintPage(pen: Pen, subject: PictureSubject): void {
  const { layout, model, viewport } = subject;
  const { tokens } = model;
  const camera = { ...subject.camera, offsetY: subject.camera.offsetY + HEAD_HEIGHT };
  const space = { width: viewport.width, height: viewport.height + HEAD_HEIGHT };
  pen.save();
  pen.beginPath();
  pen.rect(0, HEAD_HEIGHT, viewport.width, viewport.height);
  pen.clip();
  const hasRules = model.units.rules?.snapshot.rowCount === layout.size.length;
  const rules = computeRuleMarks(layout, hasRules ? model.rules : []);
  paintGroups(pen, layout, camera, space, tokens, (group) => headWidth(layout, rules, group, camera));
  paintSquares(pen, layout, model.marks, camera, space, toCss(tokens.bg));
  if (hasRules) {
    paintRuleBars(pen, layout, rules, camera, space, tokens);
    paintUnitSlots(pen, layout, rules, camera, space, tokens);
  }
  pen.restore();
  const used = write(pen, titleOf(subject), MARGIN, HEAD_HEIGHT - 12, 600, tokens.text);
  const detail = `${formatPlural(layout.unitCount, "unit")} · ${formatExact(subject.atMs)}`;
  write(pen, detail, MARGIN + used + 12, HEAD_HEIGHT - 12, 400, tokens.muted);
  const legendSpace = { width: viewport.width - 2 * MARGIN, height: LEGEND_HEIGHT };
  paintLegend(pen, model.coloring.legend, MARGIN, viewport.height + HEAD_HEIGHT, legendSpace, tokens);
}
