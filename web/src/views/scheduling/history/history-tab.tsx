// History: what one to four job traces are like, side by side: first what holds on them of what is claimed of such traces, then
// run times, sizes, arrivals, occupation, waits, failures and users.

import type { TracesDescription } from "../../../api/generated.ts";
import { useDescription } from "../../../data/job-traces.ts";
import { ChartCards } from "../../../parts/charts/chart-card.tsx";
import { useScreen } from "../../../state/use-screen.ts";
import { Frame, Message } from "../../../widgets/frame.tsx";
import { ViewLayout } from "../../../widgets/view-layout.tsx";
import { ArrivalCards } from "./arrival-cards.tsx";
import { ClaimCards } from "./claim-cards.tsx";
import { DistributionCards } from "./distribution-cards.tsx";
import { FailureCards } from "./failure-cards.tsx";
import styles from "./history.module.css";
import { OccupancyCards } from "./occupancy-cards.tsx";
import { HistoryStrip } from "./strip.tsx";
import { TraceChooser } from "./trace-chooser.tsx";
import { UserCards } from "./user-cards.tsx";
import { WaitCards } from "./wait-cards.tsx";

export default function HistoryTab() {
  const { scheduling } = useScreen();
  const description = useDescription(scheduling.history);
  return (
    <ViewLayout
      strip={<HistoryStrip description={description.value} />}
      controls={<TraceChooser chosen={scheduling.history} />}
      details={null}
    >
      <div className={styles.main}>
        {scheduling.history.length === 0 ? (
          <Message>Choose a trace on the left, or drop one there.</Message>
        ) : (
          <Frame source={description} what="the description of the traces">
            {(value) => <Sections description={value} />}
          </Frame>
        )}
      </div>
    </ViewLayout>
  );
}

function Sections({ description }: { description: TracesDescription }) {
  const { traces } = description;
  return (
    <div className={styles.sections}>
      <h2>What holds</h2>
      <ClaimCards claims={description.claims} traces={traces} />
      <h2>Jobs</h2>
      <ChartCards>
        <DistributionCards traces={traces} />
      </ChartCards>
      <h2>Arrivals</h2>
      <ChartCards>
        <ArrivalCards traces={traces} timezone={description.timezone} />
      </ChartCards>
      <h2>Occupation and waiting</h2>
      <ChartCards>
        <OccupancyCards traces={traces} />
        <WaitCards traces={traces} />
      </ChartCards>
      <h2>Failures</h2>
      <ChartCards>
        <FailureCards traces={traces} />
      </ChartCards>
      <h2>Users</h2>
      <ChartCards>
        <UserCards traces={traces} />
      </ChartCards>
    </div>
  );
}
