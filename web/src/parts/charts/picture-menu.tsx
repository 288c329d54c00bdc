// The export menu of a panel: its drawings as images, and its numbers if it has a table.

import type { RefObject } from "react";
import { savePng, saveSvg } from "../../charts/save-picture.ts";
import { ExportMenu } from "../../widgets/export-menu.tsx";

interface PictureMenuProps {
  /** The panel; its label is the title of the picture. */
  readonly place: RefObject<HTMLElement | null>;
  readonly what: string;
  /** The file's name without its ending. */
  readonly file: string;
  /** Whether there is a picture: there is none of words and tables. */
  readonly hasPicture: boolean;
  onCsv?: (() => void) | undefined;
}

export function PictureMenu({ place, what, file, hasPicture, onCsv }: PictureMenuProps) {
  const pictures = {
    png: () => place.current && void savePng(place.current, `${file}.png`),
    svg: () => place.current && saveSvg(place.current, `${file}.svg`),
  };
  return <ExportMenu what={what} files={{ ...(onCsv ? { csv: onCsv } : {}), ...(hasPicture ? pictures : {}) }} />;
}
