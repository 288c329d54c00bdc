// The choices left of the picture or table: arrangement, conditions, colors, partitions, facets. Loaded after the first
// picture is there.

import { toggleFilter } from "../../state/changes.ts";
import type { Screen } from "../../state/screen.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { findNames } from "../../state/where.ts";
import type { Editor } from "./editor/use-editor.ts";
import type { Narrowed } from "./filter/apply-where.ts";
import { Facets } from "./filter/facets.tsx";
import type { FilterColumns } from "./filter/filter-columns.ts";
import { FilterPanel } from "./filter/filter-panel.tsx";
import styles from "./overview.module.css";
import { PartitionList, type PartitionListProps } from "./partition-list.tsx";
import { ColorControls } from "./picture/color/color-controls.tsx";
import { PictureControls } from "./picture/controls.tsx";
import type { PictureModel } from "./picture/use-picture.ts";

export interface FilterProps {
  readonly screen: Screen;
  readonly columns: FilterColumns;
  readonly narrowed: Narrowed;
  readonly picture: PictureModel | null;
  readonly editor: Editor;
}

interface ControlsProps {
  readonly screen: Screen;
  readonly partitions: PartitionListProps["partitions"];
  readonly picture: PictureModel | null;
  readonly editor: Editor;
  /** Null until there are rows to filter. */
  readonly filter: FilterProps | null;
}

export default function Controls({ screen, partitions, picture, editor, filter }: ControlsProps) {
  const change = useChangeScreen();
  return (
    <div>
      {picture && <PictureControls model={picture} editor={editor} />}
      <div className={styles.conditions}>{filter && <Conditions {...filter} />}</div>
      {picture && <ColorControls model={picture} />}
      <PartitionList
        partitions={partitions}
        chosen={findNames(screen.where, "partition").filter((name) => name !== null)}
        onToggle={(partition) => change(toggleFilter("partition", partition))}
      />
      <div className={styles.facets}>{filter && <Facets {...propsOf(filter)} />}</div>
    </div>
  );
}

/** The same conditions for screens that are too narrow to show them next to the table. */
export function Filters(filter: FilterProps) {
  return (
    <>
      <Conditions {...filter} />
      <Facets {...propsOf(filter)} />
    </>
  );
}

function Conditions(filter: FilterProps) {
  const { picture, editor } = filter;
  const view = picture?.arrangement.view;
  return (
    <FilterPanel
      {...propsOf(filter)}
      filtered={view ? { mode: view.filtered, onChange: (mode) => editor.edit({ ...view, filtered: mode }) } : null}
    />
  );
}

function propsOf({ screen, columns, narrowed, picture }: FilterProps) {
  return { table: screen.table, where: screen.where, columns, narrowed, drawn: picture?.drawnRows ?? null };
}
