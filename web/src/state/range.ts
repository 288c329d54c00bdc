// A range of numbers as links write it.

export interface Range {
  /** Null: open. Both ends belong to it. */
  readonly min: number | null;
  readonly max: number | null;
}

const NUMBER = "[-+]?(?:\\d+\\.?\\d*|\\.\\d+)(?:e[-+]?\\d+)?";
const RANGE = new RegExp(`^(${NUMBER})?\\.\\.(${NUMBER})?$`, "i");

/** `0..0.15`, `0.9..`, `..400`; null if invalid, unbounded on both sides, or reversed. */
export function parseRange(text: string): Range | null {
  const match = RANGE.exec(text);
  if (match === null) return null;
  const [min, max] = [match[1], match[2]].map((part) => (part === undefined ? null : Number(part) + 0)) as [
    number | null,
    number | null,
  ];
  if (min === null && max === null) return null;
  if (!Number.isFinite(min ?? 0) || !Number.isFinite(max ?? 0)) return null;
  return min !== null && max !== null && min > max ? null : { min, max };
}

export function serializeRange({ min, max }: Range): string {
  return `${min ?? ""}..${max ?? ""}`;
}
