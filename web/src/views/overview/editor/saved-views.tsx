// The list of views: built-in, private and shared. Shows which one is open, whether it was edited and which one the
// page starts with, with a menu for each.

import { useState } from "react";
import type { NamedView } from "../../../data/views.ts";
import { Icon } from "../../../widgets/icon.tsx";
import { Toast } from "../../../widgets/toast.tsx";
import { ImportButton } from "./import-view.tsx";
import { SaveButton } from "./save-view.tsx";
import styles from "./saved-views.module.css";
import { BUILTIN_LIST } from "./use-arrangement.ts";
import type { Editor } from "./use-editor.ts";
import { startOf, useViewGroups, useViews, type Views } from "./use-views.ts";
import { ViewMenu } from "./view-menu.tsx";
import { describePath } from "./words.ts";

export function SavedViews({ editor }: { editor: Editor }) {
  const views = useViews(editor);
  const { arrangement, library } = editor;
  const groups = useViewGroups(BUILTIN_LIST, library);
  return (
    <section className={styles.views} aria-label="Views">
      <header>
        <h2>Views</h2>
        <ImportButton views={views} />
        <SaveButton editor={editor} views={views} />
      </header>
      {arrangement?.isEdited && <Edited editor={editor} views={views} />}
      <fieldset aria-label="Arrangement">
        {groups.map(({ title, views: listed }) => (
          <ul key={title} aria-label={title}>
            {groups.length > 1 && <li className={styles.group}>{title}</li>}
            {listed.map((view) => (
              <ViewRow key={view.picture} view={view} editor={editor} views={views} />
            ))}
          </ul>
        ))}
      </fieldset>
      {library.problem && <p className={styles.problem}>Shared views: {library.problem.message}</p>}
      <Toast notice={views.notice} onDismiss={views.dismiss} />
    </section>
  );
}

/** That what is shown is not what was saved, and the ways out of it. */
function Edited({ editor, views }: { editor: Editor; views: Views }) {
  const { arrangement, library } = editor;
  const open = [...library.mine, ...library.shared].find(({ picture }) => picture === arrangement?.picture);
  const saved = arrangement?.picture && arrangement.saved;
  return (
    <div className={styles.edited} role="status">
      <i aria-hidden="true" />
      <span>{saved ? "Edited" : "Not saved"}</span>
      {open && (
        <button type="button" className={styles.way} onClick={() => void views.overwrite(open)}>
          Save
        </button>
      )}
      {saved && (
        <button
          type="button"
          className={styles.way}
          data-tip={`Discard changes to “${saved.title}”`}
          onClick={() => arrangement.picture && editor.open({ picture: arrangement.picture, document: saved })}
        >
          Reset
        </button>
      )}
    </div>
  );
}

interface ViewRowProps {
  readonly view: NamedView;
  readonly editor: Editor;
  readonly views: Views;
}

function ViewRow({ view, editor, views }: ViewRowProps) {
  const [isRenaming, setRenaming] = useState(false);
  const { picture, document } = view;
  const { arrangement, library } = editor;
  const isOpen = arrangement?.picture === picture;
  const isStart = startOf(library) === picture;
  if (isRenaming) return <Rename view={view} views={views} onDone={() => setRenaming(false)} />;
  return (
    <li className={styles.row} data-on={isOpen || undefined}>
      <label data-tip={describePath(document.view)}>
        <input type="radio" name="arrangement" checked={isOpen} onChange={() => editor.open(view)} />
        <bdi>{document.title}</bdi>
        {isOpen && arrangement.isEdited && <i className={styles.dot} title="Edited" />}
      </label>
      <button
        type="button"
        className={styles.star}
        aria-pressed={isStart}
        aria-label={`Start with ${document.title}`}
        data-tip={describeStart(isStart, library.ownStart === picture)}
        onClick={() => views.toggleStartHere(picture)}
      >
        <Icon name="star" size={13} />
      </button>
      <ViewMenu view={view} editor={editor} views={views} onRename={() => setRenaming(true)} />
    </li>
  );
}

function describeStart(isStart: boolean, isOwn: boolean): string {
  if (!isStart) return "Start with this view in this browser";
  return isOwn ? "This browser starts with this view; click to use the site default" : "This view is the site default";
}

function Rename({ view, views, onDone }: { view: NamedView; views: Views; onDone: () => void }) {
  const [title, setTitle] = useState(view.document.title);
  const finish = () => {
    const next = title.trim();
    if (next !== "" && next !== view.document.title) void views.rename(view, next);
    onDone();
  };
  return (
    <li className={styles.row}>
      <input
        type="text"
        className={styles.rename}
        aria-label="New name"
        // biome-ignore lint/a11y/noAutofocus: who chose to rename writes next
        autoFocus
        maxLength={200}
        value={title}
        onFocus={(event) => event.target.select()}
        onChange={(event) => setTitle(event.target.value)}
        onBlur={finish}
        onKeyDown={(event) => {
          if (event.key === "Enter") finish();
          if (event.key === "Escape") onDone();
        }}
      />
    </li>
  );
}
