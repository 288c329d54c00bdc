// Insights: comparisons saved on the server under a name, for all users.

import { useState } from "react";
import { toProblem } from "../../base/problem.ts";
import { useInsightActions, useInsights } from "../../data/runs.ts";
import { changeRuns, INITIAL_RUNS, type RunsPage } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Menu, MenuItem, MenuSeparator } from "../../widgets/menu.tsx";
import type { ShownPage } from "./groups.ts";
import styles from "./runs.module.css";

const VERSION = 1;

export function InsightMenu({ page }: { page: ShownPage }) {
  const change = useChangeScreen();
  const saved = useInsights().value?.views ?? [];
  const actions = useInsightActions();
  const [isNaming, setNaming] = useState(false);
  const [title, setTitle] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const save = async () => {
    try {
      await actions.save(toInsightName(title), {
        title: title.trim(),
        version: VERSION,
        page: { ...page, open: null },
      });
      setNaming(false);
    } catch (error) {
      setProblem(toProblem(error).message);
    }
  };
  if (isNaming) {
    return (
      <form
        className={styles.naming}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <input
          // biome-ignore lint/a11y/noAutofocus: the form was just opened to type a name
          autoFocus
          aria-label="Insight name"
          placeholder="What the comparison shows"
          value={title}
          onChange={(event) => setTitle(event.target.value)}
        />
        <Button type="submit" look="primary" disabled={toInsightName(title) === ""}>
          Save
        </Button>
        <Button onClick={() => setNaming(false)}>Cancel</Button>
        {problem && <small>{problem}</small>}
      </form>
    );
  }
  return (
    <Menu trigger={<Button>Insights{saved.length > 0 ? ` ${saved.length}` : ""}</Button>}>
      {saved.map(({ name, title: savedTitle, document }) => (
        <MenuItem key={name} onSelect={() => change(changeRuns(readInsight(document)))}>
          {savedTitle}
        </MenuItem>
      ))}
      {saved.length > 0 && <MenuSeparator />}
      <MenuItem onSelect={() => setNaming(true)}>Save this comparison…</MenuItem>
    </Menu>
  );
}

/** The URL-safe name under which a title is stored. */
export function toInsightName(title: string): string {
  return title
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60);
}

/** Reads only fields that this version knows, with the expected types. */
export function readInsight(document: Readonly<Record<string, unknown>>): Partial<RunsPage> {
  const page = (document.page ?? {}) as Readonly<Record<string, unknown>>;
  const entries = Object.entries(INITIAL_RUNS).filter(([key, initial]) => {
    const value = page[key];
    if (key === "open") return false;
    return Array.isArray(initial) || key === "runs" ? Array.isArray(value) : typeof value === typeof initial;
  });
  return { ...INITIAL_RUNS, ...Object.fromEntries(entries.map(([key]) => [key, page[key]])) } as RunsPage;
}
