// Opens an exported view from a file or from text.

import * as Popover from "@radix-ui/react-popover";
import { useState } from "react";
import { Button, IconButton } from "../../../widgets/button.tsx";
import { PopupContent } from "../../../widgets/popup.tsx";
import settings from "./settings.module.css";
import type { Views } from "./use-views.ts";

export function ImportButton({ views }: { views: Views }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Popover.Root open={isOpen} onOpenChange={setOpen}>
      <Popover.Trigger asChild>
        <IconButton icon="upload" label="Import JSON" />
      </Popover.Trigger>
      <PopupContent className={settings.popup} side="right" align="start" sideOffset={10} aria-label="Import view">
        <h3>Import a view</h3>
        <ImportForm views={views} onDone={() => setOpen(false)} />
      </PopupContent>
    </Popover.Root>
  );
}

function ImportForm({ views, onDone }: { views: Views; onDone: () => void }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const importText = (json: string) => {
    const importFault = views.importJson(json);
    setFault(importFault);
    setText(json);
    if (importFault === null) onDone();
  };
  return (
    <div className={settings.settings}>
      <textarea
        aria-label="View as JSON"
        placeholder="Paste the JSON of a view"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setFault(null);
        }}
      />
      {fault && (
        <p role="alert" className={settings.fault}>
          {fault}
        </p>
      )}
      <span className={settings.buttons}>
        <label className={settings.file}>
          Choose a file …
          <input
            type="file"
            accept=".json,application/json"
            onChange={(event) => {
              void event.target.files?.[0]?.text().then(importText);
            }}
          />
        </label>
        <Button look="primary" disabled={text.trim() === ""} onClick={() => importText(text)}>
          Open
        </Button>
      </span>
    </div>
  );
}
