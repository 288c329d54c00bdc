// Header of a diagnosis: workload, owner, GPUs, cost in the window, and rules.

import { type ReactNode, useState } from "react";
import type { DiagnosisAnswer, RuleAnswer } from "../../api/generated.ts";
import { formatCount, formatHours, formatPlural, isKnown, MISSING } from "../../base/format.ts";
import { formatDuration, formatExact } from "../../base/time.ts";
import { useMay } from "../../data/access.ts";
import { type EditedRule, EditedRuleEditor } from "../../parts/rules/edited-rule.tsx";
import { colorRules, toCssColor } from "../../parts/rules/rule-colors.ts";
import { RuleMenu, type RuleMenuActions } from "../../parts/rules/rule-menu.tsx";
import { useRuleChanges } from "../../parts/rules/use-rule-changes.ts";
import { openNode, openRule, select } from "../../state/changes.ts";
import { diagnose } from "../../state/diagnostics.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { IconButton } from "../../widgets/button.tsx";
import { useNow } from "../../widgets/clock-context.ts";
import { Icon } from "../../widgets/icon.tsx";
import { Menu, MenuItem } from "../../widgets/menu.tsx";
import { FigureList, FigureTerm } from "../../widgets/strip.tsx";
import { Toast } from "../../widgets/toast.tsx";
import styles from "./head.module.css";
import { useIsRecorded, useSetPage } from "./shown.ts";

const JOULES_PER_KWH = 3.6e6;
/** A window of at least this share of the life counts as the whole life. */
const WHOLE = 0.98;

interface HeadProps {
  readonly answer: DiagnosisAnswer;
  /** In the order of the rule bar. */
  readonly rules: readonly RuleAnswer[];
  readonly children?: ReactNode;
}

export function Head({ answer, rules, children }: HeadProps) {
  const change = useChangeScreen();
  const isRecorded = useIsRecorded();
  return (
    <header className={styles.head}>
      <div className={styles.names}>
        <div className={styles.title}>
          <h1>
            {answer.name ?? answer.workload}
            {!isRecorded && (
              <IconButton
                icon="close"
                label="Choose another workload"
                onClick={() => {
                  change((screen) => select(null)(diagnose(null)(screen)));
                }}
              />
            )}
          </h1>
          {!isRecorded && <NodeMenu answer={answer} />}
        </div>
        <p>{describeRun(answer)}</p>
      </div>
      <Figures answer={answer} />
      {isRecorded ? <RuleIndicators answer={answer} rules={rules} /> : <RuleControls answer={answer} rules={rules} />}
      <div className={styles.end}>{children}</div>
    </header>
  );
}

export function describeRun(answer: DiagnosisAnswer): string {
  const layout = Object.entries(answer.layout)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(" × ");
  const types = answer.machine_types.join(", ");
  return [
    answer.name && answer.workload,
    answer.project,
    answer.user && `by ${answer.user}`,
    `${formatCount(answer.gpus)} × ${types || "GPU"} on ${formatPlural(answer.nodes, "node")}`,
    layout || describeRanks(answer),
  ]
    .filter(Boolean)
    .join(" · ");
}

function describeRanks({ units }: DiagnosisAnswer): string | null {
  const ranks = units.flatMap(({ global_rank }) => global_rank ?? []);
  const locals = new Set(units.flatMap(({ local_rank }) => local_rank ?? []));
  if (ranks.length === 0 || ranks.length < units.length) return null;
  return `ranks ${Math.min(...ranks)}–${Math.max(...ranks)}, ${locals.size} per node`;
}

function Figures({ answer }: { answer: DiagnosisAnswer }) {
  const now = useNow();
  const { started_at, ended_at, energy_joules, wasted_gpu_hours, gpu_hours } = answer;
  const runS = started_at === null ? null : ((ended_at ?? now) - started_at) / 1000;
  const { life, window } = answer;
  const isPart = life !== null && window !== null && window.end - window.start < WHOLE * (life.end - life.start);
  const suffix = isPart ? " in window" : "";
  const isWasted = isKnown(wasted_gpu_hours) && wasted_gpu_hours >= 0.5;
  return (
    <FigureList>
      <FigureTerm
        value={formatDuration(runS)}
        name={ended_at === null ? "running" : `ran, ${answer.state.replaceAll("_", " ")}`}
        tip={started_at === null ? "Never started" : `Since ${formatExact(started_at)}`}
      />
      <FigureTerm value={formatHours(gpu_hours)} name={`GPU-hours${suffix}`} tip="Held in the window below" />
      <FigureTerm
        value={formatHours(wasted_gpu_hours)}
        name={`wasted${suffix}`}
        tip="GPU-hours held while idle, in the window below"
        isBad={isWasted}
      />
      <FigureTerm
        value={formatEnergy(energy_joules)}
        name={`energy${suffix}`}
        tip={answer.energy_from === "power" ? "Estimated from power, in the window" : "In the window below"}
      />
    </FigureList>
  );
}

export function formatEnergy(joules: number | null): string {
  if (!isKnown(joules)) return MISSING;
  const kwh = joules / JOULES_PER_KWH;
  return `${kwh < 10 ? kwh.toFixed(1) : formatCount(kwh)}\u00a0kWh`;
}

/** Rules are made, tried and edited here, too: what a diagnosis teaches becomes a rule without leaving it. */
function RuleControls({ answer, rules }: Omit<HeadProps, "children">) {
  const change = useChangeScreen();
  const set = useSetPage();
  const changes = useRuleChanges(rules);
  const mayChange = useMay("operator");
  const [edited, setEdited] = useState<EditedRule>(null);
  const breakers = (key: string) =>
    answer.units.filter((unit) => unit.rules.some(({ rule }) => rule === key)).map(({ unit }) => unit);
  const actions: RuleMenuActions = {
    changes,
    edit: setEdited,
    filter: (key) => set({ units: breakers(key) }),
    openPage: (key) => change(openRule(key)),
  };
  return (
    <div className={styles.controls}>
      <RuleIndicators answer={answer} rules={rules} actions={actions} />
      {mayChange && (
        <button
          type="button"
          className={styles.plus}
          aria-label="+ rule"
          data-tip="Define a rule"
          onClick={() => setEdited("new")}
        >
          <Icon name="plus" size={13} />
        </button>
      )}
      <Toast notice={changes.notice} onDismiss={changes.dismiss} />
      <EditedRuleEditor edited={edited} rules={rules} onRemove={changes.remove} onClose={() => setEdited(null)} />
    </div>
  );
}

/** Opens a node as a whole: all its GPUs, whatever workload holds them. */
function NodeMenu({ answer }: { answer: DiagnosisAnswer }) {
  const change = useChangeScreen();
  const counts = new Map<string, number>();
  for (const { node } of answer.units) if (node !== null) counts.set(node, (counts.get(node) ?? 0) + 1);
  if (counts.size === 0) return null;
  return (
    <Menu
      trigger={
        <button type="button" className={styles.nodes} data-tip="All GPUs of a node, over all its workloads">
          open a node ▾
        </button>
      }
    >
      {[...counts].slice(0, MOST_NODES).map(([node, gpus]) => (
        <MenuItem key={node} hint={formatPlural(gpus, "GPU")} onSelect={() => change(openNode(node))}>
          {node}
        </MenuItem>
      ))}
    </Menu>
  );
}

const MOST_NODES = 64;

interface RuleIndicatorsProps extends Omit<HeadProps, "children"> {
  /** Null in a report, where nothing can be changed. */
  readonly actions?: RuleMenuActions;
}

function RuleIndicators({ answer, rules, actions }: RuleIndicatorsProps) {
  const colors = colorRules(rules);
  const indicators = rules
    .filter(({ is_enabled }) => is_enabled)
    .map((rule) => ({ rule, ...countUnits(answer, rule.key) }));
  const broken = indicators.filter(({ now, past }) => now + past > 0);
  return (
    <ul className={styles.rules} aria-label="Rules">
      {indicators.map(({ rule, now, past }) => (
        <li
          key={rule.key}
          data-tip={`${rule.name}: ${describeViolation(now, past, answer.gpus)}`}
          data-state={now > 0 ? "now" : past > 0 ? "past" : "kept"}
          style={{ "--rule": toCssColor(colors, rule.key) } as React.CSSProperties}
        >
          {actions ? (
            <RuleMenu
              rule={rule}
              actions={actions}
              trigger={
                <button type="button" aria-label={`${rule.name}: ${describeViolation(now, past, answer.gpus)}`}>
                  <i />
                </button>
              }
            />
          ) : (
            <i role="img" aria-label={`${rule.name}: ${describeViolation(now, past, answer.gpus)}`} />
          )}
          {now + past > 0 && broken.length <= 4 && (
            <span>
              {rule.name} <small>{formatCount(now > 0 ? now : past)}</small>
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

function countUnits({ units }: DiagnosisAnswer, key: string): { now: number; past: number } {
  const states = units.flatMap(({ rules }) => rules.filter(({ rule }) => rule === key).map(({ state }) => state));
  const now = states.filter((state) => state === "now").length;
  return { now, past: states.length - now };
}

function describeViolation(now: number, past: number, gpus: number): string {
  if (now > 0) return `broken now by ${formatCount(now)} of ${formatPlural(gpus, "GPU")}`;
  return past > 0 ? `was broken by ${formatPlural(past, "GPU")}` : "not broken";
}
