// The export menu: files of what is shown, and a link. The same in every view.

import { useEffect, useState } from "react";
import { copyText } from "../base/clipboard.ts";
import { Button, IconButton } from "./button.tsx";
import { Menu, MenuItem, MenuSeparator } from "./menu.tsx";

/** In the order they are offered. */
const KINDS = ["csv", "parquet", "json", "png", "svg", "html"] as const;
export type FileKind = (typeof KINDS)[number];

const TITLES: Readonly<Record<FileKind, string>> = {
  csv: "CSV",
  parquet: "Parquet",
  json: "JSON",
  png: "PNG",
  svg: "SVG",
  html: "HTML",
};

const HINTS: Readonly<Record<FileKind, string>> = {
  csv: "table",
  parquet: "table with all columns",
  json: "everything",
  png: "picture",
  svg: "vector graphics",
  html: "self-contained page",
};

interface ExportMenuProps {
  /** What is exported: “these rows”, “Timeline”. */
  readonly what: string;
  /** How each kind of file is made; kinds left out are not offered. */
  readonly files: Readonly<Partial<Record<FileKind, () => void>>>;
  /** Where a kind needs other words than the usual ones. */
  readonly hints?: Readonly<Partial<Record<FileKind, string>>>;
  /** A button with a word, where there is room; else a sign. */
  readonly isWord?: boolean;
  readonly align?: "start" | "end";
}

const COPIED_MS = 900;

export function ExportMenu({ what, files, hints = {}, isWord = false, align = "end" }: ExportMenuProps) {
  const [isOpen, setOpen] = useState(false);
  const [copied, setCopied] = useState<"no" | "yes" | "failed">("no");
  useEffect(() => {
    if (copied === "no") return;
    const timer = setTimeout(() => {
      setCopied("no");
      setOpen(false);
    }, COPIED_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => {
    copyText(location.href).then(
      () => setCopied("yes"),
      () => setCopied("failed"),
    );
  };
  const kinds = KINDS.filter((kind) => files[kind] !== undefined);
  const label = `Export ${what}`;
  return (
    <Menu
      trigger={isWord ? <Button aria-label={label}>Export</Button> : <IconButton icon="download" label={label} />}
      align={align}
      open={{ isOpen, setOpen }}
    >
      {kinds.map((kind) => (
        <MenuItem key={kind} hint={hints[kind] ?? HINTS[kind]} onSelect={() => files[kind]?.()}>
          {TITLES[kind]}
        </MenuItem>
      ))}
      {kinds.length > 0 && <MenuSeparator />}
      <MenuItem hint="to this screen" staysOpen onSelect={copy}>
        {copied === "no" ? "Copy link" : copied === "yes" ? "Link copied" : "Copy failed: use the address bar"}
      </MenuItem>
    </Menu>
  );
}
