// A rule as text, with autocompletion and errors marked in place.

import { type KeyboardEvent, type UIEvent, useEffect, useId, useRef, useState } from "react";
import type { Completion, RuleFault } from "../../../api/generated.ts";
import { useRuleActions } from "../../../data/rules.ts";
import { Button } from "../../../widgets/button.tsx";
import styles from "./rule-editor.module.css";
import type { DraftState } from "./use-draft.ts";

const MOST_OFFERED = 40;

export function TextTab({ state: { draft, fault, change } }: { state: DraftState }) {
  const { client } = useRuleActions();
  const listId = useId();
  const input = useRef<HTMLTextAreaElement>(null);
  const mirror = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const [suggestions, setSuggestions] = useState<readonly Completion[]>([]);
  const [active, setActive] = useState(0);
  const { text } = draft;
  // A word that is being typed is not wrong yet.
  const shownFault = suggestions.length > 0 ? null : fault;

  useEffect(() => {
    if (cursor === null) {
      setSuggestions([]);
      return;
    }
    const abort = new AbortController();
    void client.complete(text, cursor, abort.signal).then(
      (completions) => {
        setSuggestions(completions.slice(0, MOST_OFFERED));
        setActive(0);
      },
      () => undefined,
    );
    return () => abort.abort();
  }, [client, text, cursor]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the active suggestion is scrolled into view when it changes
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active, suggestions]);

  const put = (next: string, at: number, isOffering: boolean) => {
    change({ text: next, source: "text" });
    setCursor(isOffering ? at : null);
    requestAnimationFrame(() => {
      input.current?.focus();
      input.current?.setSelectionRange(at, at);
    });
  };
  const take = ([insert, start]: Completion) => {
    const end = cursor ?? text.length;
    const rest = text.slice(end);
    const word = rest.startsWith(" ") ? insert : `${insert} `;
    put(text.slice(0, start) + word + rest, start + word.length + (rest.startsWith(" ") ? 1 : 0), true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const suggestion = suggestions[active];
    if (suggestion === undefined) {
      if (event.key === "Enter") event.preventDefault();
      if (event.key === " " && event.ctrlKey) setCursor(input.current?.selectionStart ?? text.length);
      return;
    }
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setActive((active + step + suggestions.length) % suggestions.length);
    else if (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) take(suggestion);
    else if (event.key === "Escape") {
      setCursor(null);
    } else return;
    event.preventDefault();
  };
  const follow = (event: UIEvent<HTMLTextAreaElement>) => {
    if (mirror.current) mirror.current.scrollTop = event.currentTarget.scrollTop;
  };
  return (
    <div className={styles.textTab}>
      <div className={styles.typed}>
        <div ref={mirror} className={styles.mirror} aria-hidden="true">
          <Marked text={text} fault={shownFault} />
        </div>
        <textarea
          ref={input}
          rows={3}
          role="combobox"
          aria-label="Rule as text"
          aria-expanded={suggestions.length > 0}
          aria-controls={listId}
          aria-autocomplete="list"
          aria-activedescendant={suggestions.length > 0 ? `${listId}-${active}` : undefined}
          aria-invalid={shownFault !== null || undefined}
          spellCheck={false}
          autoComplete="off"
          placeholder="gpu_util p95 > 90% and power p50 < 70%"
          value={text}
          onChange={(event) => {
            change({ text: event.target.value.replaceAll("\n", " "), source: "text" });
            setCursor(event.target.selectionStart);
          }}
          onKeyDown={onKeyDown}
          onScroll={follow}
          onBlur={() => setCursor(null)}
        />
      </div>
      {suggestions.length > 0 && (
        <div ref={list} id={listId} role="listbox" aria-label="Suggestions" className={styles.offers}>
          {suggestions.map((offer, at) => (
            <button
              key={offer[0]}
              type="button"
              data-row={true}
              role="option"
              id={`${listId}-${at}`}
              tabIndex={-1}
              aria-selected={at === active}
              // The text keeps the keys.
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => take(offer)}
            >
              <b>{offer[0]}</b>
              <small>{offer[2]}</small>
            </button>
          ))}
        </div>
      )}
      <TextFault text={text} fault={shownFault} onFix={(next, at) => put(next, at, false)} />
    </div>
  );
}

/** The text again, below the typed one, with a line under what is wrong. */
function Marked({ text, fault }: { text: string; fault: RuleFault | null }) {
  if (fault?.column == null) return text;
  const start = Math.min(fault.column - 1, text.length);
  const end = Math.min(text.length, start + Math.max(1, fault.length ?? 1));
  return (
    <>
      {text.slice(0, start)}
      <mark data-column={fault.column}>{text.slice(start, end) || " "}</mark>
      {text.slice(end)}
    </>
  );
}

interface TextFaultProps {
  readonly text: string;
  readonly fault: RuleFault | null;
  onFix(text: string, cursor: number): void;
}

function TextFault({ text, fault, onFix }: TextFaultProps) {
  // No error while the text is empty.
  if (fault === null || text.trim() === "") return null;
  const { column, length, suggestion, hint, message } = fault;
  const fix = () => {
    const start = (column ?? 1) - 1;
    onFix(text.slice(0, start) + suggestion + text.slice(start + (length ?? 0)), start + (suggestion?.length ?? 0));
  };
  return (
    <div role="alert" className={styles.fault}>
      <span>
        {message}
        {hint && !suggestion && ` ${hint}`}
      </span>
      {suggestion && column != null && <Button onClick={fix}>Use {suggestion}</Button>}
    </div>
  );
}
