// Colors of clusters, the same in every chart: the largest is blue, the second amber.

import { colorAt } from "../../charts/series-colors.ts";

/** The eighth color is too close to those of critical rules, which are shown with clusters. */
const DISTINCT = 7;
/** The color of a GPU that could not be compared. */
export const NO_CLUSTER = "var(--faint)";

export function clusterColor(label: number | null): string {
  return label === null ? NO_CLUSTER : colorAt(label % DISTINCT);
}
