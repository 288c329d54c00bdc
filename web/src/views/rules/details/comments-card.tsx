// What people wrote about a workload, newest first, and a box to add to it.

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

const MOST_TEXT = 4000;

export function CommentsCard({ workload }: { workload: string }) {
  const comments = useComments(workload);
  const { comment, removeComment } = useNoteActions();
  const login = useSession().value?.who?.login ?? null;
  const [mayWrite, mayRemoveAll] = [useMay("researcher"), useMay("operator")];
  const [said, setAuthor] = useAuthor();
  const author = login ?? said;
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
            {list.map((each) => (
              <li key={each.key}>
                <header>
                  <b>{each.author}</b> <RelativeTime at={each.created_at} />
                  {(mayRemoveAll || each.author === login) && (
                    <IconButton
                      icon="close"
                      label={`Remove the comment of ${each.author}`}
                      onClick={() => void attempt(removeComment(each.key))}
                    />
                  )}
                </header>
                <p>{each.text}</p>
              </li>
            ))}
          </ul>
        )}
      </Frame>
      {mayWrite && (
        <form className={styles.form} onSubmit={submit}>
          <textarea
            aria-label="Comment"
            placeholder="What others should know"
            rows={2}
            required
            maxLength={MOST_TEXT}
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
