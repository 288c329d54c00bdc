// Saves the current view under a name, for this browser or for everybody.

import * as Popover from "@radix-ui/react-popover";
import { type FormEvent, useState } from "react";
import { MAX_TITLE } from "../../../state/view-document.ts";
import { Button, IconButton } from "../../../widgets/button.tsx";
import { PopupContent } from "../../../widgets/popup.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import { Row } from "./fields.tsx";
import settings from "./settings.module.css";
import type { Editor } from "./use-editor.ts";
import { findByTitle, type Scope, type Views } from "./use-views.ts";

export function SaveButton({ editor, views }: { editor: Editor; views: Views }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Popover.Root open={isOpen} onOpenChange={setOpen}>
      <Popover.Trigger asChild>
        <IconButton icon="save" label="Save as …" />
      </Popover.Trigger>
      <PopupContent className={settings.popup} side="right" align="start" sideOffset={10} aria-label="Save view">
        <h3>Save this view</h3>
        <SaveForm editor={editor} views={views} onDone={() => setOpen(false)} />
      </PopupContent>
    </Popover.Root>
  );
}

function SaveForm({ editor, views, onDone }: { editor: Editor; views: Views; onDone: () => void }) {
  const { arrangement, library } = editor;
  const [title, setTitle] = useState(() => suggestTitle(editor));
  const [scope, setScope] = useState<Scope>(arrangement?.picture?.startsWith("shared:") ? "shared" : "mine");
  const name = title.trim();
  const same = findByTitle(library, scope, name);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name === "") return;
    onDone();
    void views.saveAs(name, scope);
  };
  return (
    <form className={settings.settings} onSubmit={submit}>
      <Row title="Name">
        <input
          type="text"
          aria-label="Name"
          maxLength={MAX_TITLE}
          value={title}
          onFocus={(event) => event.target.select()}
          onChange={(event) => setTitle(event.target.value)}
        />
      </Row>
      <Row title="For">
        <Segmented<Scope>
          label="For"
          name="save-scope"
          value={scope}
          options={[
            { value: "mine", title: "This browser" },
            { value: "shared", title: "Everybody" },
          ]}
          onChange={setScope}
        />
      </Row>
      {same && <p className={settings.note}>A view with this name exists and will be replaced.</p>}
      <Button look="primary" type="submit" disabled={name === ""}>
        {same ? "Replace" : "Save"}
      </Button>
    </form>
  );
}

/** Of a saved view its own name, to save it again; of a built-in one a name that tells them apart. */
function suggestTitle({ arrangement }: Editor): string {
  if (arrangement === null || arrangement.saved === null) return "";
  return arrangement.picture?.includes(":") ? arrangement.title : `My ${arrangement.title.toLowerCase()}`;
}
