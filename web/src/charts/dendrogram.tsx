// A dendrogram, drawn from the linkage of a clustering: leaves at the bottom, joins at their distance, and the cut
// height. One path per color, so that thousands of leaves stay fast.

import styles from "./dendrogram.module.css";

interface DendrogramProps {
  readonly label: string;
  /** SciPy's matrix: two nodes, their distance, how many leaves. */
  readonly linkage: readonly (readonly number[])[];
  /** By leaf: its place from the left. */
  readonly placeOf: readonly number[];
  /** By leaf: the color of its cluster. */
  readonly colorOf: readonly string[];
  readonly cutHeight: number | null;
  readonly width: number;
  readonly height: number;
}

interface Joint {
  readonly x: number;
  readonly y: number;
  /** Of the whole branch; null where it joins clusters. */
  readonly color: string | null;
}

export interface Branch {
  readonly color: string | null;
  readonly path: string;
}

export function Dendrogram({ label, linkage, placeOf, colorOf, cutHeight, width, height }: DendrogramProps) {
  const top = Math.max(...linkage.map((row) => row[2] ?? 0), cutHeight ?? 0, Number.EPSILON);
  const toY = (distance: number) => height - 3 - (distance / top) * (height - 8);
  const branches = drawBranches(linkage, placeOf, colorOf, width, toY);
  const cut = cutHeight === null ? null : toY(cutHeight);
  return (
    <svg role="img" aria-label={label} className={styles.tree} viewBox={`0 0 ${width} ${height}`}>
      {branches.map(({ color, path }) => (
        <path key={color ?? ""} d={path} stroke={color ?? "var(--faint)"} />
      ))}
      {cut !== null && <path className={styles.cut} d={`M0 ${cut}H${width}`} />}
    </svg>
  );
}

export function drawBranches(
  linkage: DendrogramProps["linkage"],
  placeOf: readonly number[],
  colorOf: readonly string[],
  width: number,
  toY: (distance: number) => number,
): readonly Branch[] {
  const leaves = placeOf.length;
  const joints: Joint[] = placeOf.map((place, leaf) => ({
    x: ((place + 0.5) / Math.max(1, leaves)) * width,
    y: toY(0),
    color: colorOf[leaf] ?? null,
  }));
  const paths = new Map<string | null, string>();
  for (const [left = 0, right = 0, distance = 0] of linkage) {
    const [a, b] = [joints[left], joints[right]];
    if (!a || !b) break;
    const y = toY(distance);
    const color = a.color === b.color ? a.color : null;
    joints.push({ x: (a.x + b.x) / 2, y, color });
    const draw = (key: string | null, path: string) => paths.set(key, (paths.get(key) ?? "") + path);
    draw(a.color, `M${round(a.x)} ${round(a.y)}V${round(y)}`);
    draw(b.color, `M${round(b.x)} ${round(b.y)}V${round(y)}`);
    draw(color, `M${round(a.x)} ${round(y)}H${round(b.x)}`);
  }
  return [...paths].map(([color, path]) => ({ color, path }));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
