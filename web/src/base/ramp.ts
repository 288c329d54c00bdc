// The color scale of quantities: viridis-like, with even lightness, safe for color-blind readers.

const STOPS: readonly (readonly [number, number, number])[] = [
  [68, 1, 84],
  [71, 44, 122],
  [59, 81, 139],
  [44, 113, 142],
  [33, 144, 141],
  [39, 173, 129],
  [92, 200, 99],
  [170, 220, 50],
  [253, 231, 37],
];
/** The dark end is left out: it could not be seen on a dark background. */
const DARKEST = 0.15;
const STEPS = 64;

const COLORS: readonly string[] = Array.from({ length: STEPS + 1 }, (_, step) =>
  mixStops(DARKEST + (1 - DARKEST) * (step / STEPS)),
);

function mixStops(ratio: number): string {
  const position = ratio * (STOPS.length - 1);
  const index = Math.min(Math.floor(position), STOPS.length - 2);
  const share = position - index;
  const from = STOPS[index] ?? [0, 0, 0];
  const to = STOPS[index + 1] ?? from;
  const channel = (k: 0 | 1 | 2) => Math.round(from[k] + (to[k] - from[k]) * share);
  return `rgb(${channel(0)} ${channel(1)} ${channel(2)})`;
}

/** CSS color of a ratio 0–1; outside is clamped. */
export function rampColor(ratio: number): string {
  const clamped = Math.min(1, Math.max(0, ratio));
  return COLORS[Math.round(clamped * STEPS)] ?? "transparent";
}
