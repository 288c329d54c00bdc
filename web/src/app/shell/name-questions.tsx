// Exporters whose node is uncertain, each with a line to paste into the settings, and nodes without an exporter.

import { useState } from "react";
import type { NameQuestion } from "../../api/generated.ts";
import { copyText } from "../../base/clipboard.ts";
import { formatCount, formatPlural } from "../../base/format.ts";
import { Button } from "../../widgets/button.tsx";
import { Tag } from "../../widgets/tag.tsx";
import styles from "./sources-panel.module.css";

const MOST_QUESTIONS = 8;
const MOST_NODES = 12;

interface NameQuestionsProps {
  readonly questions: readonly NameQuestion[];
  readonly nodesWithoutExporter: readonly string[];
}

export function NameQuestions({ questions, nodesWithoutExporter }: NameQuestionsProps) {
  if (questions.length === 0 && nodesWithoutExporter.length === 0) return null;
  const lines = questions.map((question) => question.setting);
  return (
    <section aria-label="Node names">
      <div className={styles.line}>
        <h2>Node names</h2>
        <small />
        {questions.length > 0 && <Tag tone="warn">{formatPlural(questions.length, "question")}</Tag>}
      </div>
      {questions.slice(0, MOST_QUESTIONS).map((question) => (
        <Question key={`${question.exporter} ${question.host_name}`} question={question} />
      ))}
      {questions.length > MOST_QUESTIONS && <p>and {formatCount(questions.length - MOST_QUESTIONS)} more</p>}
      {questions.length > 0 && (
        <div className={styles.answer}>
          <small>
            If the suggestions are right, paste them under <code>[collect.node_names]</code> in the settings and restart
            the server.
          </small>
          <CopyButton text={`${lines.join("\n")}\n`} label={lines.length > 1 ? "Copy lines" : "Copy line"} />
        </div>
      )}
      {nodesWithoutExporter.length > 0 && <Unmeasured nodes={nodesWithoutExporter} />}
    </section>
  );
}

function Question({ question }: { question: NameQuestion }) {
  return (
    <div className={styles.question}>
      <b>{question.exporter}</b> {question.problem}.
      {!question.is_counted && <small>Its {formatPlural(question.gpus, "GPU")} are not counted.</small>}
      <code>{question.setting}</code>
    </div>
  );
}

function Unmeasured({ nodes }: { nodes: readonly string[] }) {
  const more = nodes.length - MOST_NODES;
  return (
    <div className={styles.question}>
      <b>{formatPlural(nodes.length, "node")} without an exporter</b>: {nodes.slice(0, MOST_NODES).join(", ")}
      {more > 0 && ` and ${formatCount(more)} more`}.
    </div>
  );
}

function CopyButton({ text, label }: { text: string; label: string }) {
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  const copy = () => {
    copyText(text).then(
      () => setState("copied"),
      () => setState("failed"),
    );
  };
  const words = { idle: label, copied: "Copied", failed: "Could not copy" } as const;
  return <Button onClick={copy}>{words[state]}</Button>;
}
