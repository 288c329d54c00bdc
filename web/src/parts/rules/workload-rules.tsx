// Every rule with its result for a workload, or for one of its GPUs, and the measured values. Rules that are fine, or not
// evaluated, are folded.

import { formatPlural, isKnown, MISSING } from "../../base/format.ts";
import { formatAgo, formatDuration } from "../../base/time.ts";
import { useRules, useWorkloadVerdicts } from "../../data/rules.ts";
import { useNow } from "../../widgets/clock-context.ts";
import { Frame } from "../../widgets/frame.tsx";
import { colorRules, toCssColor } from "./rule-colors.ts";
import { type RuleVerdict, sumVerdicts } from "./verdicts.ts";
import styles from "./workload-rules.module.css";

interface WorkloadRulesProps {
  readonly workload: string;
  /** Null: all of its GPUs. */
  readonly unit?: string | null;
}

export function WorkloadRules({ workload, unit = null }: WorkloadRulesProps) {
  const verdicts = useWorkloadVerdicts(workload);
  const rules = useRules().value?.rules ?? [];
  const colors = colorRules(rules);
  return (
    <Frame source={verdicts} what="rule results">
      {(value) => {
        const applicable = sumVerdicts(rules, value, unit).filter(({ state }) => state !== "out of scope");
        if (applicable.length === 0) return <p className={styles.none}>No rule has been evaluated yet.</p>;
        const list = (shown: readonly RuleVerdict[]) => (
          <ul>
            {shown.map((verdict) => (
              <li key={verdict.rule.key}>
                <Verdict verdict={verdict} color={toCssColor(colors, verdict.rule.key)} />
              </li>
            ))}
          </ul>
        );
        const notable = applicable.filter(isNotable);
        const folded = applicable.filter((verdict) => !isNotable(verdict));
        return (
          <>
            {notable.length > 0 ? list(notable) : <p className={styles.none}>No rule is broken.</p>}
            {folded.length > 0 && (
              <details className={styles.folded}>
                <summary>{describeFolded(folded)}</summary>
                {list(folded)}
              </details>
            )}
          </>
        );
      }}
    </Frame>
  );
}

function isNotable({ state }: RuleVerdict): boolean {
  return state === "broken" || state === "past";
}

/** `6 fine · 2 not evaluated`. */
function describeFolded(folded: readonly RuleVerdict[]): string {
  const fine = folded.filter(({ state }) => state !== "not judged").length;
  const unknown = folded.length - fine;
  return [fine > 0 && `${fine} fine`, unknown > 0 && `${unknown} not evaluated`].filter(Boolean).join(" · ");
}

function Verdict({ verdict, color }: { verdict: RuleVerdict; color: string }) {
  const { rule, state, example } = verdict;
  const now = useNow();
  return (
    <details className={styles.verdict} data-state={state} style={{ "--rule": color } as React.CSSProperties}>
      <summary>
        <i data-severity={rule.severity} />
        <span>{rule.name}</span>
        <small>{describeState(verdict, now)}</small>
      </summary>
      <dl>
        {example?.readings.map(({ condition, value_words, bound_words, samples, is_met }) => (
          <div key={condition} data-met={is_met ?? undefined}>
            <dt>{condition}</dt>
            <dd data-tip={`Over ${formatPlural(samples, "sample")}; the threshold is ${bound_words ?? "unknown"}`}>
              <b>{value_words ?? MISSING}</b> / {bound_words ?? MISSING}
            </dd>
          </div>
        ))}
      </dl>
      {verdict.units > 1 && example && <p>Values of {example.unit}.</p>}
      {state === "broken" && <p>{rule.reason}</p>}
    </details>
  );
}

function describeState({ state, broken, units, why, violations }: RuleVerdict, now: number): string {
  const [last] = violations;
  switch (state) {
    case "broken": {
      const since = last && isKnown(last.since) ? ` for ${formatDuration((now - last.since) / 1000)}` : "";
      if (units <= 1) return `broken${since}`;
      const subject =
        broken === units ? `all ${formatPlural(units, "GPU")}` : `${broken} of ${formatPlural(units, "GPU")}`;
      return `broken by ${subject}${since}`;
    }
    case "past":
      return last?.until ? `past, until ${formatAgo(last.until, now)}` : "past";
    case "not judged":
      return `not evaluated: ${why}`;
    default:
      return state;
  }
}
