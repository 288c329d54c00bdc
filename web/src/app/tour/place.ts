// Where the card of a tour step goes: next to its target, inside the window.

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

const GAP_PX = 14;
const EDGE_PX = 12;

/** To the right of the target, left of it or below it, if there is space; otherwise in its lower right corner. */
export function placeCard(
  target: Box,
  card: Pick<Box, "width" | "height">,
  screen: Pick<Box, "width" | "height">,
): Box {
  const right = target.left + target.width + GAP_PX;
  const left = target.left - GAP_PX - card.width;
  const below = target.top + target.height + GAP_PX;
  const within = (value: number, size: number, most: number) =>
    Math.max(EDGE_PX, Math.min(value, most - size - EDGE_PX));
  const top = within(target.top, card.height, screen.height);
  if (right + card.width + EDGE_PX <= screen.width) return { ...card, left: right, top };
  if (left >= EDGE_PX) return { ...card, left, top };
  if (below + card.height + EDGE_PX <= screen.height) {
    return { ...card, left: within(target.left, card.width, screen.width), top: below };
  }
  return {
    ...card,
    left: within(right - 2 * GAP_PX - card.width, card.width, screen.width),
    top: within(below - 2 * GAP_PX - card.height, card.height, screen.height),
  };
}
