// The number of units in the picture, and how many of them match the filters.

import { formatCount, formatPlural } from "../../../base/format.ts";
import { RowCount } from "../../../widgets/row-count.tsx";
import type { PictureModel } from "./use-picture.ts";

export function PictureCount({ model }: { model: PictureModel }) {
  const { drawn, matching, arrangement } = model;
  const all = formatPlural(drawn, arrangement.view.units === "waiting" ? "workload" : "unit");
  const text = matching === drawn ? all : `${formatCount(matching)} of ${all}`;
  return <RowCount words={text} />;
}
