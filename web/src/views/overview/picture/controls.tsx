// How the picture is arranged and colored: the choices left of it.

import { SavedViews } from "../editor/saved-views.tsx";
import type { Editor } from "../editor/use-editor.ts";
import { ColorControls } from "./color/color-controls.tsx";
import type { PictureModel } from "./use-picture.ts";

export function PictureControls({ model, editor }: { model: PictureModel; editor: Editor }) {
  return (
    <>
      <SavedViews editor={editor} />
      <ColorControls model={model} />
    </>
  );
}
