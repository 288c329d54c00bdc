// Active mutes: rule, workload, author, reason and end.

import { useState } from "react";
import type { RuleAnswer } from "../../../api/generated.ts";
import { toProblem, toSentence } from "../../../base/problem.ts";
import { useMay } from "../../../data/access.ts";
import { useMutes, useNoteActions } from "../../../data/violations.ts";
import { Button } from "../../../widgets/button.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { RelativeTime } from "../../../widgets/relative-time.tsx";
import styles from "./book.module.css";

export function MuteList({ rules }: { rules: readonly RuleAnswer[] }) {
  const mutes = useMutes();
  const { unmute } = useNoteActions();
  const mayUnmute = useMay("operator");
  const [problem, setProblem] = useState<string | null>(null);
  const endMute = (key: string) => {
    unmute(key).then(
      () => setProblem(null),
      (error: unknown) => setProblem(toSentence(toProblem(error).message)),
    );
  };
  return (
    <section aria-label="Mutes">
      <h2>Mutes</h2>
      <Frame source={mutes} what="mutes">
        {(list) =>
          list.length === 0 ? (
            <p className={styles.nothing}>No mutes. Select a violation to mute its rule.</p>
          ) : (
            <ul className={styles.list}>
              {list.map((mute) => (
                <li key={mute.key}>
                  <b>{rules.find(({ key }) => key === mute.rule)?.name ?? mute.rule}</b>
                  <span>{mute.workload === null ? "all workloads" : mute.workload}</span>
                  <span className={styles.wide} title={mute.reason}>
                    {mute.reason}
                  </span>
                  <small>
                    by {mute.author}, ends <RelativeTime at={mute.expires_at} />
                  </small>
                  {mayUnmute && <Button onClick={() => endMute(mute.key)}>Unmute</Button>}
                </li>
              ))}
            </ul>
          )
        }
      </Frame>
      {problem && (
        <p role="alert" className={styles.problem}>
          {problem}
        </p>
      )}
    </section>
  );
}
