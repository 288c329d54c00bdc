// Menu of clustering: the dendrogram, the number of clusters, the distance and the linkage.

import * as Popover from "@radix-ui/react-popover";
import { useMemo, useRef } from "react";
import type { DiagnosisAnswer } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { Dendrogram } from "../../charts/dendrogram.tsx";
import { saveTree } from "../../charts/save-picture.ts";
import { DISTANCES, type DiagnosticsPage, type Distance, LINKAGES, resolveDistance } from "../../state/diagnostics.ts";
import { Button, IconButton } from "../../widgets/button.tsx";
import { PopupContent } from "../../widgets/popup.tsx";
import { Choice } from "./choice.tsx";
import { clusterColor } from "./cluster-colors.ts";
import styles from "./cluster-menu.module.css";
import { useSetPage } from "./shown.ts";

const DISTANCE_TITLES: Readonly<Record<Distance, string>> = {
  auto: "same as the plots",
  histogram: "distributions (Jensen–Shannon)",
  euclidean: "timelines (Euclidean)",
  correlation: "timelines (correlation)",
};
const MAX_CLUSTERS = 16;
const LAGS = [0, 1, 2, 4, 8, 16];

interface ClusterMenuProps {
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
}

export function ClusterMenu({ answer, page }: ClusterMenuProps) {
  const setPage = useSetPage();
  const place = useRef<HTMLDivElement>(null);
  const set = (changes: Partial<DiagnosticsPage>) => setPage(changes, "replace");
  const count = answer.clusters.length;
  const maxCount = Math.max(1, Math.min(MAX_CLUSTERS, answer.compared.length));
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <Button className={styles.trigger}>{formatPlural(count, "cluster")} ▾</Button>
      </Popover.Trigger>
      <PopupContent className={styles.menu} align="end" aria-label="Clusters">
        <h2>
          Clustering of GPUs
          {answer.linkage.length > 0 && (
            <IconButton
              icon="download"
              label="Save the tree as SVG"
              onClick={() => {
                const tree = place.current?.querySelector<SVGElement>("svg[role=img]");
                if (tree) saveTree(tree, `${answer.workload}-tree.svg`.replaceAll(/[^\w.-]+/g, "-"));
              }}
            />
          )}
        </h2>
        <div ref={place}>
          <Tree answer={answer} />
        </div>
        <label className={styles.slider}>
          <span>Clusters</span>
          <input
            type="range"
            min={1}
            max={maxCount}
            value={Math.min(maxCount, count || 1)}
            aria-valuetext={`${formatPlural(count, "cluster")}, ${page.count === null ? "automatic" : "set manually"}`}
            onChange={(event) => set({ count: Number(event.target.value) })}
          />
          <output>{count}</output>
        </label>
        <div className={styles.choices}>
          <Button disabled={page.count === null} onClick={() => set({ count: null })}>
            Automatic
          </Button>
          <Choice
            label="Distance"
            prefix="by"
            value={page.distance}
            options={DISTANCES.map((value) => ({ value, title: DISTANCE_TITLES[value] }))}
            onChange={(distance) => set({ distance, lag: 0 })}
          />
          <Choice
            label="Linkage"
            prefix="linkage"
            value={page.linkage}
            options={LINKAGES.map((value) => ({ value, title: value }))}
            onChange={(linkage) => set({ linkage })}
          />
          {resolveDistance(page) === "correlation" && (
            <Choice
              label="Maximum lag"
              prefix="lag"
              value={String(page.lag)}
              options={LAGS.map((lag) => ({ value: String(lag), title: lag === 0 ? "none" : `${lag} steps` }))}
              onChange={(lag) => set({ lag: Number(lag) })}
            />
          )}
        </div>
      </PopupContent>
    </Popover.Root>
  );
}

const WIDTH = 380;
const HEIGHT = 120;

function Tree({ answer }: { answer: DiagnosisAnswer }) {
  const { linkage, leaves, compared, units, cut_height, clusters } = answer;
  const tree = useMemo(() => {
    const place = new Map(leaves.map((unit, at) => [unit, at]));
    const label = new Map(units.map(({ unit, cluster }) => [unit, cluster]));
    return {
      placeOf: compared.map((unit) => place.get(unit) ?? 0),
      colorOf: compared.map((unit) => clusterColor(label.get(unit) ?? null)),
    };
  }, [leaves, compared, units]);
  if (linkage.length === 0) return <p className={styles.none}>No GPUs to compare.</p>;
  return (
    <Dendrogram
      label={`Tree of ${formatPlural(compared.length, "GPU")}, cut into ${formatPlural(clusters.length, "cluster")}`}
      linkage={linkage}
      {...tree}
      cutHeight={cut_height}
      width={WIDTH}
      height={HEIGHT}
    />
  );
}
