// The tab Queue: waiting workloads, why they wait and when they likely start; and what-ifs.

import { useMemo } from "react";
import { useQueue } from "../../../data/scheduling.ts";
import { isWhatIf } from "../../../state/scheduling.ts";
import { useScreen } from "../../../state/use-screen.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { ViewLayout } from "../../../widgets/view-layout.tsx";
import { Controls } from "./controls.tsx";
import { filterQueue } from "./filter-queue.ts";
import styles from "./queue.module.css";
import { QueueTable } from "./queue-table.tsx";
import { Story } from "./story.tsx";
import { QueueStrip } from "./strip.tsx";
import { WhatIfPanel } from "./what-if-panel.tsx";

export default function QueueTab() {
  const { scheduling: page, selection } = useScreen();
  const queue = useQueue();
  const rows = useMemo(() => filterQueue(queue.value?.workloads ?? [], page), [queue.value, page]);
  return (
    <ViewLayout
      strip={<QueueStrip queue={queue.value} />}
      controls={<Controls queue={queue.value} page={page} />}
      details={selection?.kind === "workload" ? <Story workload={selection.key} /> : null}
    >
      <div className={styles.main}>
        <div className={styles.list}>
          <Frame source={queue} what="the queue">
            {(value) => <QueueTable queue={value} rows={rows} page={page} />}
          </Frame>
        </div>
        {isWhatIf(page.whatIf) && <WhatIfPanel page={page} />}
      </div>
    </ViewLayout>
  );
}
