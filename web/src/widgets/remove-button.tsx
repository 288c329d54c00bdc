// A delete button for lists, which asks for confirmation and shows why a deletion failed.

import { useState } from "react";
import { toProblem, toSentence } from "../base/problem.ts";
import { IconButton } from "./button.tsx";
import styles from "./remove-button.module.css";

interface RemoveButtonProps {
  /** What goes: “Remove lublin-256”. */
  readonly label: string;
  onRemove(): Promise<void>;
}

export function RemoveButton({ label, onRemove }: RemoveButtonProps) {
  const [isAsked, setAsked] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const remove = async () => {
    try {
      await onRemove();
    } catch (error) {
      setAsked(false);
      setProblem(toSentence(toProblem(error).message));
    }
  };
  return (
    <>
      {isAsked ? (
        <p className={styles.asked}>
          Remove it? {/* biome-ignore lint/a11y/noAutofocus: it stands where the focus was */}
          <button type="button" autoFocus onClick={() => void remove()}>
            Remove
          </button>{" "}
          <button type="button" onClick={() => setAsked(false)}>
            Keep
          </button>
        </p>
      ) : (
        <IconButton icon="close" label={label} onClick={() => setAsked(true)} />
      )}
      {problem && (
        <p role="alert" className={styles.asked}>
          {problem}
        </p>
      )}
    </>
  );
}
