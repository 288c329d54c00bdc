// Colors of clusters, the same in every chart: the largest is blue, the second amber.

const COLORS: readonly string[] = [
  "light-dark(#1f6feb, #5aa9ff)",
  "light-dark(#b46a00, #ffb454)",
  "light-dark(#7a4fd0, #b692ff)",
  "light-dark(#14827a, #4fd1c5)",
  "light-dark(#b3368f, #f08ad0)",
  "light-dark(#7e6a07, #facb39)",
  "light-dark(#52606f, #9aa4b2)",
];

/** The color of a GPU that could not be compared. */
export const NO_CLUSTER = "var(--faint)";

export function clusterColor(label: number | null): string {
  return label === null ? NO_CLUSTER : (COLORS[label % COLORS.length] ?? NO_CLUSTER);
}
