// How the picture is arranged and colored: the choices left of it.

import { BUILTIN_VIEWS } from "../../../layout/builtin-views.ts";
import { attributeOf } from "../../../layout/grammar.ts";
import { showPicture } from "../../../state/changes.ts";
import { PICTURE_NAMES } from "../../../state/screen.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { ColorControls } from "./color/color-controls.tsx";
import styles from "./controls.module.css";
import type { PictureModel } from "./use-picture.ts";

export function PictureControls({ model }: { model: PictureModel }) {
  const change = useChangeScreen();
  const { arrangement } = model;
  return (
    <>
      <fieldset className={styles.arrangements} aria-label="Arrangement">
        <h2>Arrangement</h2>
        {BUILTIN_VIEWS.map(({ key, title, view }) => (
          <label key={key} data-on={key === arrangement.key || undefined}>
            <input
              type="radio"
              name="arrangement"
              checked={key === arrangement.key}
              onChange={() => {
                const name = PICTURE_NAMES.find((known) => known === key);
                if (name) change(showPicture(name));
              }}
            />
            <span>{title}</span>
            <small>{view.layers.map((layer) => attributeOf(layer).replaceAll("_", " ")).join(" › ")}</small>
          </label>
        ))}
      </fieldset>
      <ColorControls model={model} />
    </>
  );
}
