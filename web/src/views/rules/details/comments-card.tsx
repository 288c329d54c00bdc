// Comments on a workload, newest first, and a form to add one.

import { type FormEvent, useState } from "react";
import { toProblem, toSentence } from "../../../base/problem.ts";
import { useMay, useSession } from "../../../data/access.ts";
import { useComments, useNoteActions } from "../../../data/violations.ts";
import { Card } from "../../../parts/panel/panel.tsx";
import { Button, IconButton } from "../../../widgets/button.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { RelativeTime } from "../../../widgets/relative-time.tsx";
import { useAuthor } from "../author.ts";
import styles from "./details.module.css";

const MAX_TEXT_LENGTH = 4000;

export function CommentsCard({ workload }: { workload: string }) {
  const comments = useComments(workload);
  const { comment, removeComment } = useNoteActions();
  const login = useSession().value?.who?.login ?? null;
  const [mayWrite, mayRemoveAll] = [useMay("researcher"), useMay("operator")];
  const [storedAuthor, setAuthor] = useAuthor();
  const author = login ?? storedAuthor;
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const attempt = async (action: Promise<void>): Promise<boolean> => {
    try {
      await action;
      setProblem(null);
      return true;
    } catch (error) {
      setProblem(toSentence(toProblem(error).message));
      return false;
    }
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await attempt(comment({ workload, author, text }))) setText("");
  };
  return (
    <Card title="Comments">
      <Frame source={comments} what="comments">
        {(list) => (
          <ul className={styles.comments}>
            {list.map((entry) => (
              <li key={entry.key}>
                <header>
                  <b>{entry.author}</b> <RelativeTime at={entry.created_at} />
                  {(mayRemoveAll || entry.author === login) && (
                    <IconButton
                      icon="close"
                      label={`Remove comment by ${entry.author}`}
                      onClick={() => void attempt(removeComment(entry.key))}
                    />
                  )}
                </header>
                <p>{entry.text}</p>
              </li>
            ))}
          </ul>
        )}
      </Frame>
      {mayWrite && (
        <form className={styles.form} onSubmit={submit}>
          <textarea
            aria-label="Comment"
            placeholder="Add a comment"
            rows={2}
            required
            maxLength={MAX_TEXT_LENGTH}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          {text !== "" && (
            <div className={styles.pair}>
              <input
                aria-label="Comment as"
                placeholder="Your name"
                required
                maxLength={100}
                readOnly={login !== null}
                value={author}
                onChange={(event) => setAuthor(event.target.value)}
              />
              <Button look="primary" type="submit">
                Comment
              </Button>
            </div>
          )}
          {problem && <em role="alert">{problem}</em>}
        </form>
      )}
    </Card>
  );
}
