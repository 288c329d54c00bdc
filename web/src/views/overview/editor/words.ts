// Short descriptions of layers and marks, for cards and screen readers.

import {
  attributeOf,
  type GroupSize,
  type Layer,
  type LayoutKind,
  type ShownUnits,
  type View,
} from "../../../layout/grammar.ts";
import { findAttribute } from "../../../state/attributes.ts";

export const LAYOUT_WORDS: Readonly<Record<LayoutKind, string>> = {
  pack: "pack",
  fillX: "fill →",
  fillY: "fill ↓",
  listX: "list →",
  listY: "list ↓",
};

/** What each arrangement does, in a sentence. */
export const LAYOUT_HELP: Readonly<Record<LayoutKind, string>> = {
  pack: "Pack: with the least empty space, whatever the order",
  fillX: "Fill →: side by side at the same height",
  fillY: "Fill ↓: one below the other at the same width",
  listX: "List →: in order from left to right, wrapping",
  listY: "List ↓: in order from top to bottom, wrapping",
};

export const SIZE_WORDS: Readonly<Record<GroupSize, string>> = { count: "by count", uniform: "uniform" };

export const UNITS_WORDS: Readonly<Record<ShownUnits, string>> = {
  all: "GPUs and requests",
  gpus: "GPUs",
  requested: "Requested GPUs",
  waiting: "Waiting workloads",
};

export function titleOfAttribute(name: string): string {
  return findAttribute(name)?.title ?? name.replaceAll("_", " ");
}

export function titleOfLayer(layer: Layer): string {
  return titleOfAttribute(attributeOf(layer));
}

export function describeLayer(layer: Layer): string {
  const bins = typeof layer.by === "string" ? null : describeBins(layer.by.bins);
  return [LAYOUT_WORDS[layer.layout], SIZE_WORDS[layer.size], bins].filter(Boolean).join(" · ");
}

function describeBins(bins: number | readonly number[]): string {
  return `${typeof bins === "number" ? bins : bins.length + 1} bins`;
}

export function describeMark({ mark, filtered }: View): string {
  const order = mark.sort && `${titleOfAttribute(mark.sort.by)} ${mark.sort.order === "ascending" ? "↑" : "↓"}`;
  const layout = mark.layout === "pack" ? "squares" : `squares, ${LAYOUT_WORDS[mark.layout]}`;
  return [layout, order, filtered === "vanish" ? "filtered vanish" : null].filter(Boolean).join(" · ");
}

/** `Partition › Project › Workload`. */
export function describePath({ layers }: View): string {
  return layers.length === 0 ? "no groups" : layers.map(titleOfLayer).join(" › ");
}
