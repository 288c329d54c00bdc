// Form for a what-if: another order, backfilling or placement, more or fewer nodes, a limit, a workload moved to the front.

import { type FormEvent, useState } from "react";
import type { PartitionQueue } from "../../../api/generated.ts";
import { type Choice, LIVE_BACKFILLS, LIVE_PLACEMENTS, POLICIES } from "../../../base/catalogue.ts";
import {
  changeScheduling,
  changeWhatIf,
  isWhatIf,
  NO_WHAT_IF,
  type SchedulingPage,
} from "../../../state/scheduling.ts";
import { useChangeScreen, useScreen } from "../../../state/use-screen.ts";
import { Button } from "../../../widgets/button.tsx";
import { Chip, Chips } from "../../../widgets/chip.tsx";
import styles from "./controls.module.css";
import { changeNodes, listChips, NODE_CHANGES, type NodeChange } from "./what-if-changes.ts";

interface WhatIfFormProps {
  readonly partitions: readonly PartitionQueue[];
  readonly page: SchedulingPage;
}

interface WhatIfFormWithQueueProps extends WhatIfFormProps {
  isWaiting(workload: string): boolean;
}

export function WhatIfForm({ partitions, page, isWaiting }: WhatIfFormWithQueueProps) {
  const change = useChangeScreen();
  const { selection } = useScreen();
  const { whatIf } = page;
  const waiting = selection?.kind === "workload" && isWaiting(selection.key) ? selection.key : null;
  return (
    <section aria-label="What if">
      <div className={styles.head}>
        <h2>What if</h2>
        {isWhatIf(whatIf) && (
          <button
            type="button"
            className={styles.reset}
            onClick={() => change(changeScheduling({ whatIf: NO_WHAT_IF }))}
          >
            Reset
          </button>
        )}
      </div>
      <div className={styles.fields}>
        <SelectField
          title="Order"
          currentLabel="Priorities (current)"
          value={whatIf.policy}
          options={POLICIES}
          onChange={(policy) => change(changeWhatIf({ policy }))}
        />
        <SelectField
          title="Backfill"
          currentLabel="EASY (current)"
          value={whatIf.backfill}
          options={LIVE_BACKFILLS}
          onChange={(backfill) => change(changeWhatIf({ backfill }))}
        />
        <SelectField
          title="Placement"
          currentLabel="Fullest node (current)"
          value={whatIf.placement}
          options={LIVE_PLACEMENTS}
          onChange={(placement) => change(changeWhatIf({ placement }))}
        />
        <NodesForm partitions={partitions} page={page} />
        {waiting && !whatIf.first.includes(waiting) && (
          <Button onClick={() => change(changeWhatIf({ first: [...whatIf.first, waiting] }))}>
            Move selected workload to the front
          </Button>
        )}
        <ChangeChips page={page} />
      </div>
    </section>
  );
}

interface SelectFieldProps {
  readonly title: string;
  readonly currentLabel: string;
  readonly value: string;
  readonly options: readonly Choice[];
  onChange(value: string): void;
}

function SelectField({ title, currentLabel, value, options, onChange }: SelectFieldProps) {
  return (
    <label className={styles.pick}>
      <span>{title}</span>
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">{currentLabel}</option>
        {options.map((choice) => (
          <option key={choice.name} value={choice.name}>
            {choice.title}
          </option>
        ))}
      </select>
    </label>
  );
}

function NodesForm({ partitions, page }: WhatIfFormProps) {
  const change = useChangeScreen();
  const [kind, setKind] = useState<NodeChange>("add");
  const [count, setCount] = useState(4);
  const [target, setTarget] = useState("");
  const names = partitions.map(({ name }) => name);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const chosen = target || (kind === "drain" ? "" : (names[0] ?? ""));
    change(changeWhatIf(changeNodes(page.whatIf, kind, chosen, count)));
  };
  return (
    <form className={styles.nodes} data-kind={kind} onSubmit={submit}>
      {kind !== "drain" && (
        <input
          type="number"
          min={1}
          max={10_000}
          required
          aria-label="Count"
          value={count}
          onChange={(event) => setCount(event.target.valueAsNumber)}
        />
      )}
      <select
        aria-label="Node change"
        value={kind}
        onChange={(event) => {
          setKind(event.target.value as NodeChange);
          setTarget("");
        }}
      >
        {Object.entries(NODE_CHANGES).map(([key, words]) => (
          <option key={key} value={key}>
            {words}
          </option>
        ))}
      </select>
      {kind === "drain" ? (
        <input
          aria-label="Node"
          placeholder="gpu-001"
          required
          value={target}
          onChange={(event) => setTarget(event.target.value.trim())}
        />
      ) : (
        <select
          aria-label="Partition to change"
          value={target || names[0]}
          onChange={(event) => setTarget(event.target.value)}
        >
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      <Button type="submit">Apply</Button>
    </form>
  );
}

/** Changes that no menu shows, each removable. */
function ChangeChips({ page }: { page: SchedulingPage }) {
  const change = useChangeScreen();
  const chips = listChips(page.whatIf);
  if (chips.length === 0) return null;
  return (
    <Chips>
      {chips.map(({ key, words, without }) => (
        <Chip key={key} aria-label={`Remove ${words}`} onClick={() => change(changeWhatIf(without))}>
          <span>{words}</span>
        </Chip>
      ))}
    </Chips>
  );
}
