// Where a dragged layer or attribute would land: among the layers, or in the palette, which removes it. Pure.

import type { ClientRect, KeyboardCoordinateGetter } from "@dnd-kit/core";
import { sortableKeyboardCoordinates } from "@dnd-kit/sortable";

export const PALETTE = "palette";
/** The squares, which lie within the innermost layer. */
export const SQUARES = "squares";
const NEW = "new ";

export function paletteId(attribute: string): string {
  return `${NEW}${attribute}`;
}

/** The attribute that is dragged out of the palette; null for a layer. */
export function attributeOfId(id: string | number): string | null {
  const text = String(id);
  return text.startsWith(NEW) ? text.slice(NEW.length) : null;
}

interface Target {
  readonly id: string | number;
  readonly rect: Pick<ClientRect, "top" | "height">;
}

/** The index at which an attribute would become a layer; null: nowhere. Above the middle of a layer is before it. */
export function findPlace(ids: readonly string[], dragged: Pick<ClientRect, "top" | "height">, over: Target | null) {
  if (over === null || over.id === PALETTE) return null;
  if (over.id === SQUARES) return ids.length;
  const at = ids.indexOf(String(over.id));
  if (at < 0) return null;
  const isBelow = dragged.top + dragged.height / 2 > over.rect.top + over.rect.height / 2;
  return isBelow ? at + 1 : at;
}

/** Arrow keys move an attribute from place to place; layers move as in any sortable list, and down into the palette. */
export const keyCoordinates: KeyboardCoordinateGetter = (event, args) => {
  const { active, droppableRects, collisionRect } = args.context;
  const step = event.code === "ArrowDown" ? 1 : event.code === "ArrowUp" ? -1 : 0;
  if (active === null || collisionRect === null || step === 0) return undefined;
  const rects = [...droppableRects].filter(([id]) => id !== active.id && id !== PALETTE).map(([, rect]) => rect);
  const tops = rects.map(({ top }) => top).sort((a, b) => a - b);
  if (attributeOfId(active.id) === null) {
    const palette = droppableRects.get(PALETTE);
    const isLast = tops.filter((top) => top > collisionRect.top + 1).length <= 1; // the squares are below
    if (step === 1 && isLast && palette) {
      event.preventDefault();
      return { x: palette.left, y: palette.top };
    }
    return sortableKeyboardCoordinates(event, args);
  }
  event.preventDefault();
  const next =
    step === 1
      ? tops.find((top) => top > collisionRect.top + 1)
      : tops.toReversed().find((top) => top < collisionRect.top - 1);
  // A pixel up, so that it lands before the layer it is over.
  return next === undefined ? undefined : { x: rects[0]?.left ?? collisionRect.left, y: next - 1 };
};
