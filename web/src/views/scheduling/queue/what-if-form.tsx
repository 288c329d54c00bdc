// What is tried out on the queue: another order, backfilling or placement, nodes more or fewer, a limit.

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

interface WithQueue extends WhatIfFormProps {
  isWaiting(workload: string): boolean;
}

export function WhatIfForm({ partitions, page, isWaiting }: WithQueue) {
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
            className={styles.quiet}
            onClick={() => change(changeScheduling({ whatIf: NO_WHAT_IF }))}
          >
            As it is
          </button>
        )}
      </div>
      <div className={styles.what}>
        <Pick
          title="Order"
          none="Priorities, as it is"
          value={whatIf.policy}
          options={POLICIES}
          onChange={(policy) => change(changeWhatIf({ policy }))}
        />
        <Pick
          title="Backfill"
          none="EASY, as it is"
          value={whatIf.backfill}
          options={LIVE_BACKFILLS}
          onChange={(backfill) => change(changeWhatIf({ backfill }))}
        />
        <Pick
          title="Placement"
          none="Fullest node, as it is"
          value={whatIf.placement}
          options={LIVE_PLACEMENTS}
          onChange={(placement) => change(changeWhatIf({ placement }))}
        />
        <NodesForm partitions={partitions} page={page} />
        {waiting && !whatIf.first.includes(waiting) && (
          <Button onClick={() => change(changeWhatIf({ first: [...whatIf.first, waiting] }))}>
            Put the selected one first
          </Button>
        )}
        <ChangeChips page={page} />
      </div>
    </section>
  );
}

interface PickProps {
  readonly title: string;
  readonly none: string;
  readonly value: string;
  readonly options: readonly Choice[];
  onChange(value: string): void;
}

function Pick({ title, none, value, options, onChange }: PickProps) {
  return (
    <label className={styles.pick}>
      <span>{title}</span>
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">{none}</option>
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
  const [where, setWhere] = useState("");
  const names = partitions.map(({ name }) => name);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const place = where || (kind === "drain" ? "" : (names[0] ?? ""));
    change(changeWhatIf(changeNodes(page.whatIf, kind, place, count)));
  };
  return (
    <form className={styles.nodes} data-kind={kind} onSubmit={submit}>
      {kind !== "drain" && (
        <input
          type="number"
          min={1}
          max={10_000}
          required
          aria-label="How many"
          value={count}
          onChange={(event) => setCount(event.target.valueAsNumber)}
        />
      )}
      <select
        aria-label="Change of nodes"
        value={kind}
        onChange={(event) => {
          setKind(event.target.value as NodeChange);
          setWhere("");
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
          value={where}
          onChange={(event) => setWhere(event.target.value.trim())}
        />
      ) : (
        <select
          aria-label="Partition of the change"
          value={where || names[0]}
          onChange={(event) => setWhere(event.target.value)}
        >
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      <Button type="submit">Try</Button>
    </form>
  );
}

/** Changes that no menu shows, each with a way to take it back. */
function ChangeChips({ page }: { page: SchedulingPage }) {
  const change = useChangeScreen();
  const chips = listChips(page.whatIf);
  if (chips.length === 0) return null;
  return (
    <Chips>
      {chips.map(({ key, words, without }) => (
        <Chip key={key} aria-label={`Not: ${words}`} onClick={() => change(changeWhatIf(without))}>
          <span>{words}</span>
        </Chip>
      ))}
    </Chips>
  );
}
