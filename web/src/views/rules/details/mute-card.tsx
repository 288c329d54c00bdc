// Mutes the alerts of a rule for a time, for this workload or for all. Muted violations are still stored and shown.

import { type FormEvent, useState } from "react";
import type { MuteAnswer } from "../../../api/generated.ts";
import { toProblem, toSentence } from "../../../base/problem.ts";
import { useMay } from "../../../data/access.ts";
import { useRules } from "../../../data/rules.ts";
import { useMutes, useNoteActions } from "../../../data/violations.ts";
import { Card } from "../../../parts/panel/panel.tsx";
import { Button } from "../../../widgets/button.tsx";
import { RelativeTime } from "../../../widgets/relative-time.tsx";
import { useAuthor } from "../author.ts";
import styles from "./details.module.css";

const DURATIONS: readonly { readonly hours: number; readonly title: string }[] = [
  { hours: 1, title: "1 hour" },
  { hours: 8, title: "8 hours" },
  { hours: 24, title: "1 day" },
  { hours: 168, title: "7 days" },
  { hours: 720, title: "30 days" },
];
const MAX_REASON_LENGTH = 4000;

export function MuteCard({ workload, rule }: { workload: string; rule: string }) {
  const mutes = useMutes().value;
  const ruleAnswer = useRules().value?.rules.find(({ key }) => key === rule);
  const [isOpen, setOpen] = useState(false);
  const mayMute = useMay("operator");
  const activeMute = mutes?.find(
    (mute) => mute.rule === rule && (mute.workload === null || mute.workload === workload),
  );
  if (!ruleAnswer || !mutes) return null;
  return (
    <Card title={`Alerts for ${ruleAnswer.name}`}>
      {activeMute && <Muted mute={activeMute} />}
      {!activeMute && !isOpen && (
        <div className={styles.status}>
          <span>Alerts are sent.</span>
          {mayMute && <Button onClick={() => setOpen(true)}>Mute…</Button>}
        </div>
      )}
      {!activeMute && isOpen && <MuteForm workload={workload} rule={rule} onDone={() => setOpen(false)} />}
    </Card>
  );
}

function Muted({ mute }: { mute: MuteAnswer }) {
  const { unmute } = useNoteActions();
  const mayUnmute = useMay("operator");
  const [problem, setProblem] = useState<string | null>(null);
  return (
    <div className={styles.status}>
      <span>
        Muted {mute.workload === null ? "for all workloads" : "for this workload"} by {mute.author}, ends{" "}
        <RelativeTime at={mute.expires_at} />: {mute.reason}
        {problem && <em role="alert">{problem}</em>}
      </span>
      {mayUnmute && (
        <Button
          onClick={() => unmute(mute.key).catch((error: unknown) => setProblem(toSentence(toProblem(error).message)))}
        >
          Unmute
        </Button>
      )}
    </div>
  );
}

function MuteForm({ workload, rule, onDone }: { workload: string; rule: string; onDone: () => void }) {
  const { mute } = useNoteActions();
  const [author, setAuthor] = useAuthor();
  const [reason, setReason] = useState("");
  const [hours, setHours] = useState(168);
  const [isForAll, setForAll] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await mute({ rule, workload: isForAll ? null : workload, reason, author, hours });
      onDone();
    } catch (error) {
      setProblem(toSentence(toProblem(error).message));
    }
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <input
        aria-label="Reason"
        placeholder="Reason for muting"
        // biome-ignore lint/a11y/noAutofocus: the form was just opened to be filled in
        autoFocus
        required
        maxLength={MAX_REASON_LENGTH}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
      <input
        aria-label="Your name"
        placeholder="Your name"
        required
        maxLength={100}
        value={author}
        onChange={(event) => setAuthor(event.target.value)}
      />
      <div className={styles.pair}>
        <select
          aria-label="Workloads"
          value={isForAll ? "all" : "one"}
          onChange={(event) => setForAll(event.target.value === "all")}
        >
          <option value="one">this workload</option>
          <option value="all">all workloads</option>
        </select>
        <select aria-label="Duration" value={hours} onChange={(event) => setHours(Number(event.target.value))}>
          {DURATIONS.map(({ hours: value, title }) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
      </div>
      {problem && <em role="alert">{problem}</em>}
      <div className={styles.pair}>
        <Button onClick={onDone}>Cancel</Button>
        <Button look="primary" type="submit">
          Mute
        </Button>
      </div>
    </form>
  );
}
