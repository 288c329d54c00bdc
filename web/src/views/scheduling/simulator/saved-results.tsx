// Saved results of earlier simulations, to open again or remove.

import { useState } from "react";
import type { SimulationAsk, SimulationRow } from "../../../api/generated.ts";
import { ESTIMATES, RULE_PRESETS } from "../../../base/catalogue.ts";
import { formatCount } from "../../../base/format.ts";
import { useRemoveSimulation, useSimulations } from "../../../data/job-traces.ts";
import { changeSimulator, type SimulatorChoice } from "../../../state/scheduling.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { RelativeTime } from "../../../widgets/relative-time.tsx";
import { RemoveButton } from "../../../widgets/remove-button.tsx";
import styles from "./simulator.module.css";
import { nameBackfill, namePolicy } from "./words.ts";

const MAX_SHOWN = 8;

export function SavedResults({ result }: { result: string }) {
  const simulations = useSimulations();
  const change = useChangeScreen();
  const remove = useRemoveSimulation();
  const [showsAll, setShowsAll] = useState(false);
  // Removing the shown result clears the choice: else the link would simulate it again.
  const removeResult = async (simulation: string) => {
    await remove(simulation);
    if (simulation === result) change(changeSimulator({ trace: "" }), "replace");
  };
  const rows = simulations.value?.simulations ?? [];
  if (rows.length === 0) return null;
  return (
    <section aria-label="Saved results">
      <h2>Saved results</h2>
      <ul className={styles.saved}>
        {rows.slice(0, showsAll ? rows.length : MAX_SHOWN).map((row) => (
          <li key={row.simulation}>
            <button
              type="button"
              data-row={true}
              aria-pressed={row.simulation === result}
              onClick={() => change(changeSimulator(toChoice(row)))}
            >
              <b>{row.trace}</b>
              <small>
                {describeRequest(row.asked)}, <RelativeTime at={row.made_at} />
              </small>
            </button>
            <RemoveButton
              label={`Remove ${row.trace}, ${describeRequest(row.asked)}`}
              onRemove={() => removeResult(row.simulation)}
            />
          </li>
        ))}
      </ul>
      {rows.length > MAX_SHOWN && (
        <button type="button" className={styles.more} aria-expanded={showsAll} onClick={() => setShowsAll(!showsAll)}>
          {showsAll ? "Show fewer" : `Show all ${rows.length}`}
        </button>
      )}
    </section>
  );
}

export function describeRequest({ policies = [], backfills = [] }: SimulationAsk): string {
  const list = (names: readonly string[], label: (name: string) => string, noun: string) =>
    names.length <= 2 ? names.map(label).join(", ") : `${formatCount(names.length)} ${noun}`;
  return `${list(policies, namePolicy, "orders")} + ${list(backfills, nameBackfill, "backfillings")}`;
}

/** The choice that led to a saved result. */
export function toChoice({ simulation, asked }: Pick<SimulationRow, "simulation" | "asked">): SimulatorChoice {
  return {
    trace: asked.trace,
    orders: asked.policies ?? [],
    fills: asked.backfills ?? [],
    rules: RULE_PRESETS.find((name) => name === asked.semantics) ?? "clusterscape",
    estimates: ESTIMATES.find((name) => name === asked.estimates) ?? "request",
    omegas: (asked.omegas ?? []).map(String),
    machine: asked.processors ? String(asked.processors) : "",
    result: simulation,
  };
}
