// The tab History: statistics of one to four job traces, and a list to select them.

import { useDescription } from "../../../data/job-traces.ts";
import { useScreen } from "../../../state/use-screen.ts";
import { Frame, Message } from "../../../widgets/frame.tsx";
import { ViewLayout } from "../../../widgets/view-layout.tsx";
import styles from "./history.module.css";
import { Sections } from "./sections.tsx";
import { HistoryStrip } from "./strip.tsx";
import { TraceChooser } from "./trace-chooser.tsx";

export default function HistoryTab() {
  const { scheduling } = useScreen();
  const description = useDescription(scheduling.history);
  return (
    <ViewLayout
      strip={<HistoryStrip description={description.value} />}
      controls={<TraceChooser selected={scheduling.history} />}
      details={null}
    >
      <div className={styles.main}>
        {scheduling.history.length === 0 ? (
          <Message>Select a trace on the left, or drop a file there.</Message>
        ) : (
          <Frame source={description} what="the description of the traces">
            {(value) => <Sections description={value} />}
          </Frame>
        )}
      </div>
    </ViewLayout>
  );
}
