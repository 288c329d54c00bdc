// Statistics of one to four job traces: tested claims, then charts of run times, sizes, arrivals, utilization, waits, failures
// and users, then a table and the notes on cleaned rows. Shared by the page and the report.

import type { TraceDescription, TracesDescription } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { ChartCards } from "../../../parts/charts/chart-card.tsx";
import { ArrivalCards } from "./arrival-cards.tsx";
import { ClaimCards } from "./claim-cards.tsx";
import { ClaimMatrix } from "./claim-matrix.tsx";
import { DistributionCards } from "./distribution-cards.tsx";
import { FactsTable } from "./facts-table.tsx";
import { FailureCards } from "./failure-cards.tsx";
import styles from "./history.module.css";
import { OccupancyCards } from "./occupancy-cards.tsx";
import { UserCards } from "./user-cards.tsx";
import { WaitCards } from "./wait-cards.tsx";

export function Sections({ description }: { description: TracesDescription }) {
  const { traces } = description;
  return (
    <div className={styles.sections}>
      <h2>Tested claims</h2>
      {traces.length > 1 && <ClaimMatrix claims={description.claims} traces={traces} />}
      <ClaimCards claims={description.claims} traces={traces} />
      <h2>Jobs</h2>
      <ChartCards>
        <DistributionCards traces={traces} />
      </ChartCards>
      <h2>Arrivals</h2>
      <ChartCards>
        <ArrivalCards traces={traces} timezone={description.timezone} />
      </ChartCards>
      <h2>Utilization and waiting</h2>
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
      <h2>{traces.length > 1 ? "Comparison" : "Statistics"}</h2>
      <FactsTable traces={traces} />
      <Notes traces={traces} />
    </div>
  );
}

function Notes({ traces }: { traces: readonly TraceDescription[] }) {
  const notes = traces.flatMap(({ name, notes: traceNotes }) => traceNotes.map((note) => ({ name, note })));
  if (notes.length === 0) return null;
  return (
    <>
      <h2>Notes on rows</h2>
      <ul className={styles.notes}>
        {notes.map(({ name, note }) => (
          <li key={`${name} ${note.action} ${note.reason}`}>
            {name}: {formatCount(note.count)} {note.action}: {note.reason}
            {note.lines &&
              note.lines.length > 0 &&
              ` (line ${note.lines.join(", ")}${note.count > note.lines.length ? ", …" : ""})`}
          </li>
        ))}
      </ul>
    </>
  );
}
