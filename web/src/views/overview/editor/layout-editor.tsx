// The layout editor: the layers of the picture from the outermost to the unit, to add, remove, reorder and configure.
// Changes are drawn immediately.

import {
  closestCenter,
  DndContext,
  type DragEndEvent,
  KeyboardSensor,
  PointerSensor,
  useSensor,
  useSensors,
} from "@dnd-kit/core";
import { SortableContext, sortableKeyboardCoordinates, verticalListSortingStrategy } from "@dnd-kit/sortable";
import * as Popover from "@radix-ui/react-popover";
import { useLayoutEffect, useRef, useState } from "react";
import type { Units } from "../../../data/units.ts";
import { attributeOf, type View } from "../../../layout/grammar.ts";
import { MAX_LAYERS } from "../../../layout/parse-view.ts";
import { IconButton } from "../../../widgets/button.tsx";
import { Icon } from "../../../widgets/icon.tsx";
import { PopupContent } from "../../../widgets/popup.tsx";
import { INSTRUCTIONS, makeAnnouncements } from "./announcements.ts";
import { AttributePicker } from "./attribute-picker.tsx";
import {
  addLayer,
  canAddLayer,
  changeLayer,
  type LayerIds,
  moveLayer,
  NO_IDS,
  nameLayers,
  removeLayer,
} from "./edit.ts";
import { INDENT_PX, LayerCard, Settings } from "./layer-card.tsx";
import { LayerSettings } from "./layer-settings.tsx";
import styles from "./layout-editor.module.css";
import { MarkSettings } from "./mark-settings.tsx";
import settings from "./settings.module.css";
import { type Editor, useUndoKeys } from "./use-editor.ts";
import { describeLayer, describeMark, titleOfAttribute, titleOfLayer, UNITS_WORDS } from "./words.ts";

interface LayoutEditorProps {
  readonly editor: Editor;
  readonly units: Units;
  readonly view: View;
}

export function LayoutEditor({ editor, units, view }: LayoutEditorProps) {
  const [announcement, setAnnouncement] = useState("");
  useUndoKeys(editor);
  return (
    <section className={styles.editor} aria-label="Layout">
      <header>
        <h2>Layout</h2>
        <IconButton icon="undo" label="Undo (Ctrl+Z)" disabled={!editor.canUndo} onClick={editor.undo} />
        <IconButton icon="redo" label="Redo (Ctrl+Shift+Z)" disabled={!editor.canRedo} onClick={editor.redo} />
      </header>
      <Layers editor={editor} units={units} view={view} onSay={setAnnouncement} />
      <MarkCard editor={editor} units={units} view={view} />
      <AddLayer
        units={units}
        view={view}
        onAdd={(attribute) => {
          setAnnouncement(`${titleOfAttribute(attribute)} added as layer ${view.layers.length + 1}.`);
          editor.edit(addLayer(view, attribute));
        }}
      />
      <p data-visually-hidden={true} aria-live="polite">
        {announcement}
      </p>
    </section>
  );
}

/** Cards go up and down only. */
const keepColumn = ({ transform }: { transform: { x: number; y: number; scaleX: number; scaleY: number } }) => ({
  ...transform,
  x: 0,
});

function Layers({ editor, units, view, onSay }: LayoutEditorProps & { onSay: (words: string) => void }) {
  const [moved, setMoved] = useState<string | null>(null);
  const ids = useLayerIds(view);
  const used = view.layers.map(attributeOf);
  const count = view.layers.length;
  const sensors = useSensors(
    useSensor(PointerSensor, { activationConstraint: { distance: 4 } }),
    useSensor(KeyboardSensor, {
      coordinateGetter: sortableKeyboardCoordinates,
      keyboardCodes: { start: ["Space"], cancel: ["Escape"], end: ["Space", "Enter"] },
    }),
  );
  const titleAt = (index: number) => {
    const layer = view.layers[index];
    return layer ? titleOfLayer(layer) : "";
  };
  const placeOf = (id: string | number) => ids.indexOf(String(id)) + 1;
  const onDragEnd = ({ active, over }: DragEndEvent) => {
    if (over !== null && over.id !== active.id)
      editor.edit(moveLayer(view, placeOf(active.id) - 1, placeOf(over.id) - 1));
  };
  const move = (index: number, step: -1 | 1) => {
    const next = moveLayer(view, index, index + step);
    if (next === view) return;
    setMoved(ids[index] ?? null);
    onSay(`${titleAt(index)} is now layer ${index + step + 1} of ${count}.`);
    editor.edit(next);
  };
  const remove = (index: number) => {
    setMoved(ids[index + 1] ?? ids[index - 1] ?? null);
    onSay(`${titleAt(index)} removed.`);
    editor.edit(removeLayer(view, index));
  };
  return (
    <DndContext
      sensors={sensors}
      collisionDetection={closestCenter}
      modifiers={[keepColumn]}
      accessibility={{
        announcements: makeAnnouncements((id) => titleAt(placeOf(id) - 1), placeOf, count),
        screenReaderInstructions: INSTRUCTIONS,
      }}
      onDragStart={() => setMoved(null)}
      onDragEnd={onDragEnd}
    >
      <SortableContext items={[...ids]} strategy={verticalListSortingStrategy}>
        <ol className={styles.layers} aria-label="Layers, outermost first">
          {view.layers.map((layer, index) => (
            <LayerCard
              key={ids[index]}
              id={ids[index] ?? ""}
              depth={index}
              title={titleOfLayer(layer)}
              words={describeLayer(layer)}
              hasKeys={moved !== null && moved === ids[index]}
              onMove={(step) => move(index, step)}
              onRemove={() => remove(index)}
            >
              <LayerSettings
                units={units}
                layer={layer}
                used={used}
                onChange={(changes) => editor.edit(changeLayer(view, index, changes))}
                onRemove={() => remove(index)}
              />
            </LayerCard>
          ))}
        </ol>
      </SortableContext>
    </DndContext>
  );
}

function useLayerIds(view: View): readonly string[] {
  const last = useRef<LayerIds>(NO_IDS);
  const named = nameLayers(view, last.current);
  useLayoutEffect(() => {
    last.current = named;
  }, [named]);
  return named.ids;
}

function MarkCard({ editor, units, view }: LayoutEditorProps) {
  const title = UNITS_WORDS[view.units];
  return (
    <div className={styles.card} style={{ marginLeft: `${view.layers.length * INDENT_PX}px` }}>
      <Popover.Root>
        <Popover.Trigger asChild>
          <button
            type="button"
            className={styles.handle}
            data-mark=""
            aria-label={`Squares: ${title} ${describeMark(view)}`}
          >
            <i aria-hidden="true" />
            <span>{title}</span> <small>{describeMark(view)}</small>
          </button>
        </Popover.Trigger>
        <Popover.Trigger asChild>
          <IconButton icon="gear" label="Settings of squares" className={styles.gear} />
        </Popover.Trigger>
        <Settings title={title}>
          <MarkSettings units={units} view={view} onChange={editor.edit} />
        </Settings>
      </Popover.Root>
    </div>
  );
}

interface AddLayerProps {
  readonly units: Units;
  readonly view: View;
  onAdd(attribute: string): void;
}

function AddLayer({ units, view, onAdd }: AddLayerProps) {
  const [isOpen, setOpen] = useState(false);
  const isFull = !canAddLayer(view);
  return (
    <Popover.Root open={isOpen} onOpenChange={setOpen}>
      <Popover.Trigger asChild>
        <button
          type="button"
          className={styles.add}
          style={{ marginLeft: `${view.layers.length * INDENT_PX}px` }}
          disabled={isFull}
          data-tip={isFull ? `A view has at most ${MAX_LAYERS} layers` : undefined}
        >
          <Icon name="plus" size={12} /> add a layer
        </button>
      </Popover.Trigger>
      <PopupContent className={settings.popup} side="right" align="start" sideOffset={10}>
        <AttributePicker
          units={units}
          used={view.layers.map(attributeOf)}
          value={null}
          onChoose={(attribute) => {
            setOpen(false);
            onAdd(attribute);
          }}
        />
      </PopupContent>
    </Popover.Root>
  );
}
