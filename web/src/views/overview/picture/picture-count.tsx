// The number of units in the picture, and how many of them match the filters.

import { formatCount, formatPlural } from "../../../base/format.ts";
import { RowCount } from "../../../widgets/row-count.tsx";
import type { PictureModel } from "./use-picture.ts";

export function PictureCount({ model }: { model: PictureModel }) {
  const { drawn, matching } = model;
  const text =
    matching === drawn ? formatPlural(drawn, "unit") : `${formatCount(matching)} of ${formatPlural(drawn, "unit")}`;
  return <RowCount words={text} />;
}
