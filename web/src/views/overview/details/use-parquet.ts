// Downloads units as a Parquet file, which the server writes with all columns.

import { useState } from "react";
import { downloadBlob } from "../../../base/download.ts";
import { toProblem } from "../../../base/problem.ts";
import { useServices } from "../../../data/services.ts";
import { useScreen } from "../../../state/use-screen.ts";

/** What went wrong, in words, and how to save. */
export function useParquet(): readonly [string | null, (names: readonly string[]) => void] {
  const { client } = useServices();
  const { at } = useScreen();
  const [problem, setProblem] = useState<string | null>(null);
  const save = (names: readonly string[]) => {
    setProblem(null);
    client
      .unitsFile(names, at)
      .then((file) => downloadBlob("clusterscape-units.parquet", file))
      .catch((error: unknown) => setProblem(toProblem(error).message));
  };
  return [problem, save];
}
