// Changes of a layout as pure functions: a view in, a view out.

import {
  attributeOf,
  type Bins,
  DEFAULT_SORT,
  type Layer,
  type Mark,
  makeLayer,
  type View,
} from "../../../layout/grammar.ts";
import { MAX_LAYERS } from "../../../layout/parse-view.ts";
import { findAttribute } from "../../../state/attributes.ts";

export const DEFAULT_BINS = 5;

/** By default innermost, arranged like the layer around it; the same view where there are as many as there may be. */
export function addLayer(view: View, attribute: string, index = view.layers.length): View {
  if (!canAddLayer(view)) return view;
  const around = index === 0 ? view.layers[0] : view.layers[index - 1];
  const { layout, aspect } = around ?? { layout: "pack", aspect: 1 };
  const inner = layout === "fillX" || layout === "fillY" ? "pack" : layout;
  const layer = makeLayer(groupBy(attribute), {
    layout: inner,
    aspect,
    sort: isNumber(attribute) ? DEFAULT_SORT : { by: "count", order: "descending", of: null },
  });
  return { ...view, layers: view.layers.toSpliced(index, 0, layer) };
}

export function canAddLayer({ layers }: View): boolean {
  return layers.length < MAX_LAYERS;
}

export function removeLayer(view: View, index: number): View {
  return { ...view, layers: view.layers.filter((_, at) => at !== index) };
}

/** The same view where there is nowhere to go. */
export function moveLayer(view: View, from: number, to: number): View {
  const layer = view.layers[from];
  if (layer === undefined || from === to || to < 0 || to >= view.layers.length) return view;
  const others = view.layers.filter((_, at) => at !== from);
  return { ...view, layers: others.toSpliced(to, 0, layer) };
}

export function changeLayer(view: View, index: number, changes: Partial<Layer>): View {
  return { ...view, layers: view.layers.map((layer, at) => (at === index ? { ...layer, ...changes } : layer)) };
}

export function changeMark(view: View, changes: Partial<Mark>): View {
  return { ...view, mark: { ...view.mark, ...changes } };
}

/** Numbers are cut into bins, except those that only count and so repeat. */
export function groupBy(attribute: string): string | Bins {
  const definition = findAttribute(attribute);
  if (definition?.kind !== "number" || (definition.unit === "count" && definition.metric === null)) return attribute;
  return { metric: attribute, bins: DEFAULT_BINS };
}

export function isNumber(attribute: string): boolean {
  return findAttribute(attribute)?.kind === "number";
}

/** Layers by names of their own, which stay while a layer changes place or attribute. */
export interface LayerIds {
  readonly ids: readonly string[];
  readonly attributes: readonly string[];
}

export const NO_IDS: LayerIds = { ids: [], attributes: [] };

/** What is known of the layers before tells which is which now: views come from the link, where layers have no names. */
export function nameLayers({ layers }: View, before: LayerIds): LayerIds {
  const attributes = layers.map(attributeOf);
  const isSameLength = attributes.length === before.attributes.length;
  const changed = attributes.filter((attribute, at) => attribute !== before.attributes[at]).length;
  if (isSameLength && changed === 0) return before;
  if (isSameLength && changed === 1) return { ids: before.ids, attributes };
  const unmatched = new Map(before.ids.map((id, at) => [id, before.attributes[at]]));
  const usedIds = new Set(before.ids);
  const ids = attributes.map((attribute) => {
    const id = [...unmatched].find(([, of]) => of === attribute)?.[0];
    if (id !== undefined) {
      unmatched.delete(id);
      return id;
    }
    let number = 1;
    while (usedIds.has(`${attribute} ${number}`)) number += 1;
    usedIds.add(`${attribute} ${number}`);
    return `${attribute} ${number}`;
  });
  return { ids, attributes };
}

/** `20, 50, 80`: rising numbers; null where it is not that. */
export function parseLimits(text: string): readonly number[] | null {
  const limits = text
    .split(/[\s,;]+/)
    .filter((part) => part !== "")
    .map(Number);
  const isRising = limits.every((limit, at) => Number.isFinite(limit) && (at === 0 || limit > (limits[at - 1] ?? 0)));
  return limits.length > 0 && limits.length < 50 && isRising ? limits : null;
}
