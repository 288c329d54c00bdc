// The controls of the picture's arrangement.

import { LayoutEditor } from "../editor/layout-editor.tsx";
import { SavedViews } from "../editor/saved-views.tsx";
import type { Editor } from "../editor/use-editor.ts";
import type { PictureModel } from "./use-picture.ts";

export function PictureControls({ model, editor }: { model: PictureModel; editor: Editor }) {
  return (
    <>
      <LayoutEditor editor={editor} units={model.units} view={model.arrangement.view} />
      <SavedViews editor={editor} />
    </>
  );
}
