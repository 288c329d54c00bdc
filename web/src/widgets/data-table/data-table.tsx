// A virtualized table: only visible rows are rendered. Rows come sorted and filtered; the table renders them, reports
// clicks on headings and rows, and supports arrow keys.

import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import { classNames } from "../../base/class-names.ts";
import { type Column, fitColumns, gridTemplate } from "./columns.ts";
import styles from "./data-table.module.css";
import { findMove } from "./grid-keys.ts";
import { useWidth } from "./use-width.ts";

const ROW_PX = 30;
const HEADING_PX = 30;
const SIDE_PADDING_PX = 24;

export interface TableSort {
  readonly column: string;
  readonly descending: boolean;
}

interface DataTableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  keyOf(row: Row): string;
  readonly selectedKey: string | null;
  readonly sort: TableSort;
  onSort(sort: TableSort): void;
  /** `isWalking`: by arrow keys, one of many. */
  onSelect(row: Row, isWalking: boolean): void;
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, rows, keyOf, selectedKey, onSelect } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const width = useWidth(scroller);
  const sortedBy = props.sort.column;
  const columns = useMemo(
    () => fitColumns(props.columns, width - SIDE_PADDING_PX, sortedBy),
    [props.columns, width, sortedBy],
  );
  const template = useMemo(() => gridTemplate(columns), [columns]);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 8,
    scrollPaddingStart: HEADING_PX,
  });
  useScrollToTop(scroller, props.sort);
  const { cursor, move } = useCursor(props, (index) => virtualizer.scrollToIndex(index));
  const id = useId();
  const items = virtualizer.getVirtualItems();
  const slots = useSlots(items.length);

  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[cursor];
    if (event.key === "Enter" && event.target === event.currentTarget && row !== undefined) onSelect(row, false);
    const page = Math.floor((scroller.current?.clientHeight ?? 0) / ROW_PX) - 2;
    const target = findMove(event.key, { index: cursor, count: rows.length, page });
    if (target === null) return;
    event.preventDefault();
    move(target);
  };

  const onClick = (event: MouseEvent) => {
    const index = findRowIndex(event.target);
    const row = index === null ? undefined : rows[index];
    if (index === null || row === undefined) return;
    move(index, false);
    onSelect(row, false);
  };

  return (
    <div ref={scroller} className={styles.scroller}>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: ARIA in HTML lets a table be a grid
        role="grid"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-activedescendant={cursor >= 0 ? `${id}-${cursor}` : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onClick={onClick}
        className={styles.table}
      >
        <Headings {...props} columns={columns} template={template} />
        <tbody style={{ height: virtualizer.getTotalSize() }}>
          {items.map((item) => {
            const row = rows[item.index];
            if (row === undefined) return null;
            return (
              <TableRow
                key={item.index % slots}
                id={`${id}-${item.index}`}
                index={item.index}
                top={item.start}
                row={row}
                columns={columns}
                template={template}
                isSelected={selectedKey !== null && keyOf(row) === selectedKey}
                isCursor={item.index === cursor}
              />
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

interface TableRowProps<Row> {
  readonly id: string;
  readonly index: number;
  readonly top: number;
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  readonly template: string;
  readonly isSelected: boolean;
  readonly isCursor: boolean;
}

/** Rendered again only if its row changed: scrolling renders only rows that become visible. */
const TableRow = memo(function TableRow<Row>(props: TableRowProps<Row>) {
  const { id, index, top, row, columns, template, isSelected, isCursor } = props;
  return (
    <tr
      id={id}
      data-index={index}
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      data-cursor={isCursor || undefined}
      style={{ transform: `translateY(${top}px)`, gridTemplateColumns: template }}
    >
      {columns.map((column) => (
        <td key={column.key} className={column.align === "right" ? styles.right : undefined}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}) as <Row>(props: TableRowProps<Row>) => ReactNode;

function findRowIndex(target: EventTarget): number | null {
  const index = target instanceof Element ? target.closest("tr")?.dataset.index : undefined;
  return index === undefined ? null : Number(index);
}

/** How many rows to keep and reuse: as many as were ever drawn at once, so that no two share a place. */
function useSlots(drawn: number): number {
  const [slots, setSlots] = useState(drawn);
  if (drawn > slots) setSlots(drawn);
  return Math.max(slots, drawn, 1);
}

/** Another order begins at its beginning. */
function useScrollToTop(scroller: RefObject<HTMLDivElement | null>, sort: TableSort): void {
  const order = `${sort.column} ${sort.descending}`;
  const shown = useRef(order);
  useEffect(() => {
    if (shown.current !== order) scroller.current?.scrollTo({ top: 0 });
    shown.current = order;
  }, [scroller, order]);
}

/** The row the arrow keys stand on. It follows the selection, and takes it along while something is selected. */
function useCursor<Row>(props: DataTableProps<Row>, scrollTo: (index: number) => void) {
  const { rows, keyOf, selectedKey, onSelect } = props;
  const [cursor, setCursor] = useState(-1);
  const selectedIndex = useMemo(
    () => (selectedKey === null ? -1 : rows.findIndex((row) => keyOf(row) === selectedKey)),
    [rows, keyOf, selectedKey],
  );
  const scroll = useRef(scrollTo);
  scroll.current = scrollTo;
  const shownKey = useRef<string | null>(null);
  useEffect(() => {
    if (selectedIndex < 0) return;
    setCursor(selectedIndex);
    // Only a new selection is scrolled into view: rows that move with a new tick must not scroll the page.
    if (shownKey.current !== selectedKey) scroll.current(selectedIndex);
    shownKey.current = selectedKey;
  }, [selectedIndex, selectedKey]);

  const move = (index: number, isWalking = true) => {
    setCursor(index);
    if (!isWalking) {
      shownKey.current = rows[index] === undefined ? null : keyOf(rows[index]);
      return;
    }
    scrollTo(index);
    const row = rows[index];
    if (selectedIndex >= 0 && row !== undefined) onSelect(row, true);
  };
  return { cursor: Math.min(cursor, rows.length - 1), move };
}

type HeadingsProps<Row> = Pick<DataTableProps<Row>, "columns" | "sort" | "onSort"> & { readonly template: string };

function Headings<Row>({ columns, sort, onSort, template }: HeadingsProps<Row>) {
  return (
    <thead>
      <tr style={{ gridTemplateColumns: template }}>
        {columns.map((column) => {
          const isSorted = column.key === sort.column;
          const direction = sort.descending ? "descending" : "ascending";
          const next = isSorted ? !sort.descending : (column.isLargestFirst ?? false);
          return (
            <th
              key={column.key}
              scope="col"
              data-scaled={column.scale !== undefined || undefined}
              aria-sort={isSorted ? direction : undefined}
              className={classNames(column.align === "right" && styles.right, isSorted && styles.sorted)}
            >
              <button
                type="button"
                data-tip={column.tip}
                onClick={() => onSort({ column: column.key, descending: next })}
              >
                {column.title}
                {isSorted && <span aria-hidden="true">{sort.descending ? "↓" : "↑"}</span>}
              </button>
              {column.scale && <div className={styles.scale}>{column.scale}</div>}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}
