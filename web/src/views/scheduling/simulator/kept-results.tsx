// Results of former simulations, to be looked at again or forgotten.

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

const SHOWN = 8;

export function KeptResults({ result }: { result: string }) {
  const kept = useSimulations();
  const change = useChangeScreen();
  const remove = useRemoveSimulation();
  const [isAll, setAll] = useState(false);
  // Who forgets what is in sight starts with an empty choice: the link would make it anew.
  const forget = async (simulation: string) => {
    await remove(simulation);
    if (simulation === result) change(changeSimulator({ trace: "" }), "replace");
  };
  const rows = kept.value?.simulations ?? [];
  if (rows.length === 0) return null;
  return (
    <section aria-label="Kept results">
      <h2>Kept results</h2>
      <ul className={styles.kept}>
        {rows.slice(0, isAll ? rows.length : SHOWN).map((row) => (
          <li key={row.simulation}>
            <button
              type="button"
              data-row={true}
              aria-pressed={row.simulation === result}
              onClick={() => change(changeSimulator(toChoice(row)))}
            >
              <b>{row.trace}</b>
              <small>
                {sayAsked(row.asked)}, <RelativeTime at={row.made_at} />
              </small>
            </button>
            <RemoveButton
              label={`Remove ${row.trace}, ${sayAsked(row.asked)}`}
              onRemove={() => forget(row.simulation)}
            />
          </li>
        ))}
      </ul>
      {rows.length > SHOWN && (
        <button type="button" className={styles.more} aria-expanded={isAll} onClick={() => setAll(!isAll)}>
          {isAll ? "Show fewer" : `Show all ${rows.length}`}
        </button>
      )}
    </section>
  );
}

export function sayAsked({ policies = [], backfills = [] }: SimulationAsk): string {
  const say = (names: readonly string[], one: (name: string) => string) =>
    names.length <= 2 ? names.map(one).join(", ") : `${formatCount(names.length)} of them`;
  return `${say(policies, namePolicy)} + ${say(backfills, nameBackfill)}`;
}

/** The choice that a kept result answers. */
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
