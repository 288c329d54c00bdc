// The layout editor: the layers of the picture from the outermost to the unit, to add, remove, reorder and configure.
// Changes are drawn immediately.

import {
  type CollisionDetection,
  closestCenter,
  DndContext,
  type DragEndEvent,
  type DragMoveEvent,
  type DragOverEvent,
  DragOverlay,
  KeyboardSensor,
  type Modifier,
  PointerSensor,
  pointerWithin,
  useDroppable,
  useSensor,
  useSensors,
} from "@dnd-kit/core";
import { SortableContext, verticalListSortingStrategy } from "@dnd-kit/sortable";
import * as Popover from "@radix-ui/react-popover";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
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
import { Palette } from "./palette.tsx";
import { attributeOfId, findPlace, keyCoordinates, PALETTE, SQUARES } from "./places.ts";
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
      <Layers editor={editor} units={units} view={view} onSay={setAnnouncement}>
        <MarkCard editor={editor} units={units} view={view} />
        <AddLayer
          units={units}
          view={view}
          onAdd={(attribute) => {
            setAnnouncement(`${titleOfAttribute(attribute)} added as layer ${view.layers.length + 1}.`);
            editor.edit(addLayer(view, attribute));
          }}
        />
      </Layers>
      <p data-visually-hidden={true} aria-live="polite">
        {announcement}
      </p>
    </section>
  );
}

/** Layers go up and down only, attributes of the palette anywhere. */
const keepColumn: Modifier = ({ active, transform }) =>
  active !== null && attributeOfId(active.id) === null ? { ...transform, x: 0 } : transform;

/** What is under the pointer; with keys, or between cards, what is nearest. */
const findTargets: CollisionDetection = (args) => {
  const under = pointerWithin(args);
  return under.length > 0 ? under : closestCenter(args);
};

interface LayersProps extends LayoutEditorProps {
  /** What stands below the layers: the squares, and the button that adds one. */
  readonly children: ReactNode;
  onSay(words: string): void;
}

function Layers({ editor, units, view, onSay, children }: LayersProps) {
  const [moved, setMoved] = useState<string | null>(null);
  const [dragged, setDragged] = useState<string | null>(null);
  const [place, setPlace] = useState<number | null>(null);
  const ids = useLayerIds(view);
  const used = view.layers.map(attributeOf);
  const count = view.layers.length;
  const sensors = useSensors(
    useSensor(PointerSensor, { activationConstraint: { distance: 4 } }),
    useSensor(KeyboardSensor, {
      coordinateGetter: keyCoordinates,
      keyboardCodes: { start: ["Space"], cancel: ["Escape"], end: ["Space", "Enter"] },
    }),
  );
  const titleAt = (index: number) => {
    const layer = view.layers[index];
    return layer ? titleOfLayer(layer) : "";
  };
  const placeOf = (id: string | number) => ids.indexOf(String(id)) + 1;
  const newAttribute = dragged === null ? null : attributeOfId(dragged);
  const findNewPlace = ({ active, over }: Pick<DragOverEvent, "active" | "over">) => {
    const rect = active.rect.current.translated;
    return rect === null || !canAddLayer(view) ? null : findPlace(ids, rect, over);
  };
  const titleOf = (id: string | number) => {
    const attribute = attributeOfId(id);
    return attribute === null ? titleAt(placeOf(id) - 1) : titleOfAttribute(attribute);
  };
  const onDragMove = (event: DragMoveEvent) => {
    setPlace(attributeOfId(event.active.id) === null ? null : findNewPlace(event));
  };
  const onDragEnd = (event: DragEndEvent) => {
    const { active, over } = event;
    const attribute = attributeOfId(active.id);
    const index = attribute === null ? null : findNewPlace(event);
    setDragged(null);
    setPlace(null);
    if (attribute !== null) {
      if (index !== null) editor.edit(addLayer(view, attribute, index));
    } else if (over?.id === PALETTE) editor.edit(removeLayer(view, placeOf(active.id) - 1));
    else if (over !== null && over.id !== active.id && placeOf(over.id) > 0)
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
      collisionDetection={findTargets}
      modifiers={[keepColumn]}
      accessibility={{
        announcements: makeAnnouncements({
          titleOf,
          placeOf,
          placeOfNew: (event) => {
            const index = findNewPlace(event);
            return index === null ? null : index + 1;
          },
          count,
        }),
        screenReaderInstructions: INSTRUCTIONS,
      }}
      onDragStart={({ active }) => {
        setMoved(null);
        setDragged(String(active.id));
      }}
      onDragMove={onDragMove}
      onDragEnd={onDragEnd}
      onDragCancel={() => {
        setDragged(null);
        setPlace(null);
      }}
    >
      <SortableContext items={[...ids]} strategy={verticalListSortingStrategy}>
        <ol className={styles.layers} aria-label="Layers, outermost first">
          {view.layers.map((layer, index) => (
            <LayerCard
              key={ids[index]}
              id={ids[index] ?? ""}
              depth={index}
              isBefore={place === index}
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
      <Below isBefore={place === count}>{children}</Below>
      <Palette
        units={units}
        used={used}
        isTarget={dragged !== null && newAttribute === null}
        isFull={!canAddLayer(view)}
      />
      <DragOverlay dropAnimation={null}>
        {newAttribute && <span className={styles.attribute}>{titleOfAttribute(newAttribute)}</span>}
      </DragOverlay>
    </DndContext>
  );
}

/** An attribute that is dropped on the squares becomes the innermost layer. */
function Below({ isBefore, children }: { isBefore: boolean; children: ReactNode }) {
  const { setNodeRef } = useDroppable({ id: SQUARES });
  return (
    <div ref={setNodeRef} className={styles.below} data-before={isBefore || undefined}>
      {children}
    </div>
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
