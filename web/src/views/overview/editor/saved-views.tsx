// The views to choose from: built in, this browser's, everybody's.

import { attributeOf } from "../../../layout/grammar.ts";
import styles from "../picture/controls.module.css";
import { BUILTIN_LIST } from "./use-arrangement.ts";
import type { Editor } from "./use-editor.ts";

export function SavedViews({ editor }: { editor: Editor }) {
  const { arrangement, library } = editor;
  return (
    <fieldset className={styles.arrangements} aria-label="Arrangement">
      <h2>Arrangement</h2>
      {[...BUILTIN_LIST, ...library.mine, ...library.shared].map((view) => (
        <label key={view.picture} data-on={view.picture === arrangement?.picture || undefined}>
          <input
            type="radio"
            name="arrangement"
            checked={view.picture === arrangement?.picture}
            onChange={() => editor.open(view)}
          />
          <span>{view.document.title}</span>
          <small>{view.document.view.layers.map((layer) => attributeOf(layer).replaceAll("_", " ")).join(" › ")}</small>
        </label>
      ))}
    </fieldset>
  );
}
